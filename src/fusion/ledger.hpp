// The ledger: a verdict on every producer-consumer edge of the graph.
#pragma once

#include <string>
#include <vector>

#include "base/decline.hpp"

namespace opfuse {

struct EdgeVerdict {
  std::string tensor;
  std::string producer, consumer;  ///< node names
  std::string group;               ///< id of the candidate that fuses them; empty: not fused
  Decline decline;                 ///< the first rule that failed, when not fused
  bool operator==(const EdgeVerdict&) const = default;
};

}  // namespace opfuse
