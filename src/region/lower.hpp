// Graph nodes -> regions. One lower_<family>.cpp per operator family.
#pragma once

#include <functional>
#include <variant>
#include <vector>

#include "base/decline.hpp"
#include "ir/graph.hpp"
#include "region/region.hpp"
#include "region/step_operand.hpp"

namespace opfuse {

/// What a region parameter stands for: a value of the graph the node lives in, or a constant made while
/// lowering (BatchNorm folded into weights, tables of Resize ...). Made constants are computed when asked
/// for: planners lower many groups and need no bytes.
struct LoweredOperand {
  const Value* value = nullptr;  ///< input, graph constant or output value; null for a made constant
  Tensor constant;               ///< the bytes when the parameter is a constant of the graph
  std::function<Tensor()> make;  ///< computes the bytes of a made constant
  const Value* from = nullptr;   ///< the graph constant that they are computed from, null: none or several
  Tensor bytes() const { return make ? make() : constant; }
};

struct LoweredGroup {
  Region region;
  std::vector<LoweredOperand> operands;  ///< one per region parameter
  // of a loop of steps, in which the groups of a node run in turn
  std::vector<StepOperand> step_operands{};  ///< one per region parameter; empty: no loop
  Dim steps = 0;
  bool backwards = false;  ///< from the last slice to the first
};

/// Lowers one node: a fused node (its body becomes the stages) or a single operator. Constant BatchNorm
/// statistics fold into the weights here, in double precision. "A group is legal exactly when lowering
/// it succeeds": planner, rule engine and cost model call this one function. Operands whose open dimensions may be 1
/// are read as if those were equal to the result's; with `stretches`, right in either case.
std::variant<LoweredGroup, Decline> lower_group(const Node& node, bool stretches = false);

/// The launches of one step of a recurrent_steps node, in order.
std::variant<std::vector<LoweredGroup>, Decline> lower_steps(const Node& node);

}  // namespace opfuse
