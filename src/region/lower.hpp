// Graph nodes -> regions. One lower_<family>.cpp per operator family.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/decline.hpp"
#include "ir/graph.hpp"
#include "region/region.hpp"

namespace opfuse {

/// What a region parameter stands for: a value of the graph the node lives in, or a constant made while
/// lowering (BatchNorm folded into weights, zero bias ...).
struct LoweredOperand {
  const Value* value = nullptr;  ///< input, graph constant or output value; null for a made constant
  Tensor constant;               ///< the bytes when the parameter's role is constant
};

struct LoweredGroup {
  Region region;
  std::vector<LoweredOperand> operands;  ///< one per region parameter
};

/// Lowers one node: a fused node (its body becomes the stages) or a single operator. Constant BatchNorm
/// statistics fold into the weights here, in double precision. "A group is legal exactly when lowering
/// it succeeds": planner, rule engine and cost model call this one function.
std::variant<LoweredGroup, Decline> lower_group(const Node& node);

}  // namespace opfuse
