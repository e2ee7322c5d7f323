// What groups cost, as a planner asks: joined, or apart. The driver answers from the region and the target.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>

#include "base/decline.hpp"
#include "ir/graph.hpp"

namespace opfuse {

struct GroupPrice {
  double microseconds = 0;          ///< predicted, of one core, the launch included; values of rank 4 dense
  double blocked_microseconds = 0;  ///< the same with their channels in blocks
  int64_t bytes = 0;                ///< operands and results, each once

  GroupPrice& operator+=(const GroupPrice& other) {
    microseconds += other.microseconds;
    blocked_microseconds += other.blocked_microseconds;
    bytes += other.bytes;
    return *this;
  }
  bool operator==(const GroupPrice&) const = default;
};

/// The price of a fused node as one launch, or why it cannot be one.
using Pricing = std::function<std::variant<GroupPrice, Decline>(const Node&)>;

/// Both forms of an edge.
struct PricePair {
  GroupPrice apart;
  std::optional<GroupPrice> joined;  ///< nothing: it cannot be one launch
  bool operator==(const PricePair&) const = default;
};

}  // namespace opfuse
