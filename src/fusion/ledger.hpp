// The ledger: a verdict on every producer-consumer edge of the graph.
#pragma once

#include <string>
#include <vector>

#include "base/decline.hpp"
#include "fusion/price.hpp"

namespace opfuse {

inline constexpr const char* kOneLaunch = "one_launch";
inline constexpr const char* kView = "view";  ///< one side has no launch: it is a place in the other's memory
inline constexpr const char* kCopy = "copy";  ///< the operand of a concat is copied to its place
inline constexpr const char* kTwoLaunches = "two_launches";

struct EdgeVerdict {
  std::string tensor;
  std::string producer, consumer;                 ///< node names
  std::string group;                              ///< id of the candidate that fuses them; empty: not fused
  Decline decline;                                ///< the first predicate that failed, when not fused
  std::optional<PricePair> price = std::nullopt;  ///< both forms, when not fused and both can be priced
  std::string executed{};  ///< what runs in the end, one of the words below; empty: nothing was lowered yet
  std::string by{};        ///< the group, shaping pass or operator that made it so
  bool operator==(const EdgeVerdict&) const = default;
};

}  // namespace opfuse
