// Launches of kernels, of the interpreter and of routines, and copies.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fail.hpp"
#include "ir/placed.hpp"
#include "ops/routines.hpp"
#include "program/program_builder.hpp"
#include "program/routine_launches.hpp"

namespace opfuse {

void ProgramBuilder::launch(const Node& node, const LoweredGroup& group,
                            const std::vector<std::optional<Layout>>& wishes, const std::string& name) {
  Launch added;
  added.region = group.region;
  added.name = name;
  added.pattern = node.pattern;
  for (const Source& source : node.sources) added.sources.push_back(source.name);
  for (size_t i = 0; i < group.operands.size(); ++i) {
    const Param& param = group.region.params[i];
    const LoweredOperand& operand = group.operands[i];
    const int index =
        param.role == ParamRole::constant ? constant_buffer(operand, param, wishes[i], name) : find(operand.value);
    OPFUSE_CHECK(index >= 0, "launch {} has no buffer for parameter {}", name, i);
    added.buffers.push_back(index);
  }
  for (size_t i = 0; i < added.buffers.size(); ++i)
    if (wishes[i] && wants_copy(added, i, *wishes[i]))
      added.buffers[i] = copy_in_blocks(added.buffers[i], *wishes[i], node, "is predicted faster with the copy");
  for (const size_t i : without_kernel(added, wishes))
    added.buffers[i] = copy_in_blocks(added.buffers[i], *wishes[i], node, "has no kernel for it as it lies");
  program_.launches.push_back(std::move(added));
}

void ProgramBuilder::launch_all(const Node& node, const std::vector<LoweredGroup>& groups,
                                const std::vector<LayoutWish>& wishes) {
  if (!groups.empty() && !groups[0].step_operands.empty()) return loop(node, groups);
  for (size_t g = 0; g < groups.size(); ++g)
    launch(node, groups[g], wishes[g].params,
           groups.size() == 1 ? launch_name(node) : fmt::format("{}[{}]", launch_name(node), g));
}

void ProgramBuilder::emit_reference(const Node& node) {
  Launch added;
  added.name = launch_name(node);
  for (const Source& source : node.sources) added.sources.push_back(source.name);
  if (added.sources.empty()) added.sources.push_back(node.name());
  for (const Value* value : node.inputs) {
    if (value != nullptr && value->is_constant())
      added.buffers.push_back(
          constant_buffer({value, *value->constant, {}}, {ParamRole::constant, value->type}, {}, ""));
    else
      added.buffers.push_back(value == nullptr ? -1 : find(value));
  }
  for (const Value* value : node.outputs) added.buffers.push_back(find(value));
  added.reference = true;
  if (node.op == placed_op()) added.pattern = node.pattern;  // the device, or a copy
  const std::optional<RoutineCall> call = routine_of(node);
  if (call) added.schedule = schedule_of(*call, node.outputs.size());
  levels_.add(added);
  if (call)
    program_.notes.push_back(fmt::format("{}: known when {} has run", fmt::join(call->defines, ", "), added.name));
  program_.launches.push_back(std::move(added));
}

void ProgramBuilder::launch_copy(int from, int to, const Node& node, const std::string& name) {
  Value source;
  source.type = buffer(from).type;
  Launch added;
  added.region = copy_group(&source, nullptr, source.type.shape).region;
  added.name = name;
  for (const Source& source : node.sources) added.sources.push_back(source.name);
  added.buffers = {from, to};
  program_.launches.push_back(std::move(added));
}

void ProgramBuilder::launch_copy(const Value* from, int to, const Node& node, const std::string& name) {
  const LoweredGroup group = copy_group(from, nullptr, from->type.shape);
  Launch added;
  added.region = group.region;
  added.name = name;
  for (const Source& source : node.sources) added.sources.push_back(source.name);
  const int source =
      from->is_constant() ? constant_buffer(group.operands[0], group.region.params[0], {}, name) : find(from);
  added.buffers = {source, to};
  program_.launches.push_back(std::move(added));
}

void ProgramBuilder::emit_copy(const Value* from, int to) {
  const LoweredGroup group = copy_group(from, nullptr, from->type.shape);
  Launch added;
  added.region = group.region;
  added.name = fmt::format("copy__{}", from->name);
  const int source =
      from->is_constant() ? constant_buffer(group.operands[0], group.region.params[0], {}, added.name) : find(from);
  added.buffers = {source, to};
  program_.launches.push_back(std::move(added));
}

}  // namespace opfuse
