// Graph nodes -> regions. One lower_<family>.cpp per operator family.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "ir/graph.hpp"
#include "region/region.hpp"

namespace opfuse {

/// Why something was not done: an answer, never an error. `code` is stable snake_case
/// ("multi_consumer", "stage_sequence"), `evidence` names nodes and numbers.
struct Decline {
  std::string code;
  std::string message;
  std::vector<std::string> evidence;
};

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
