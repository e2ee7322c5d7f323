// Bodies: launches that a loop repeats, on the slice of each step or on each part.
#include <fmt/format.h>

#include <algorithm>

#include "program/program_builder.hpp"

namespace opfuse {

int ProgramBuilder::step_box(int whole, const LoweredGroup& group, const TensorType& type) {
  const auto [at, fresh] = step_boxes_.emplace(std::pair(whole, group.backwards), -1);
  if (!fresh) return at->second;
  const int box =
      add_buffer(buffer(whole).kind == BufferKind::constant ? BufferKind::constant : BufferKind::intermediate,
                 buffer(whole).name, type);
  buffer(box).layout = buffer(whole).layout;
  buffer(box).view_of = whole;
  buffer(box).view_offset.assign(type.shape.rank(), Dim(0));
  if (group.backwards) buffer(box).view_offset[0] = group.steps - Dim(1);
  return at->second = box;
}

int ProgramBuilder::initial_state(int given, int slices, const Node& node) {
  if (buffer(given).kind == BufferKind::constant || dense_rows(given)) return given;
  const int copy =
      add_buffer(BufferKind::intermediate, fmt::format("{}[initial]", buffer(given).name), buffer(given).type);
  buffer(copy).layout = buffer(slices).layout;
  launch_copy(given, copy, node, fmt::format("{}.initial", launch_name(node)));
  return copy;
}

bool ProgramBuilder::dense_rows(int index) {
  const Buffer& b = buffer(index);
  if (!b.layout.is_dense()) return false;
  if (b.view_of < 0 || b.view_offset.empty()) return true;
  const std::vector<Dim>&own = b.type.shape.dims, &whole = buffer(b.view_of).type.shape.dims;
  return std::equal(own.begin() + 1, own.end(), whole.begin() + 1, whole.end()) && dense_rows(b.view_of);
}

int ProgramBuilder::step_buffer(const LoweredGroup& group, size_t i, const std::optional<Layout>& wished,
                                const std::string& owner) {
  const Param& param = group.region.params[i];
  const LoweredOperand& operand = group.operands[i];
  const StepOperand& step = group.step_operands[i];
  const bool slice = step.moves || step.before;
  if (param.role != ParamRole::constant)
    return slice ? step_box(find(operand.value), group, param.type) : find(operand.value);
  if (!slice) return constant_buffer(operand, param, wished, owner);
  return step_box(constant_buffer(operand, {param.role, operand.value->type}, {}, owner), group, param.type);
}

void ProgramBuilder::loop(const Node& node, const std::vector<LoweredGroup>& groups) {
  std::vector<Launch> launches;
  for (size_t g = 0; g < groups.size(); ++g) {
    const LoweredGroup& group = groups[g];
    Launch& added = launches.emplace_back();
    added.region = group.region;
    added.name = groups.size() == 1 ? launch_name(node) : fmt::format("{}[{}]", launch_name(node), g);
    added.pattern = "Recurrent";
    for (const Source& source : node.sources) added.sources.push_back(source.name);
    const std::vector<std::optional<Layout>> wishes = wish(group.region).params;
    for (size_t i = 0; i < group.operands.size(); ++i)
      added.buffers.push_back(step_buffer(group, i, wishes[i], added.name));
    added.steps = group.step_operands;
    for (size_t i = 0; i < added.steps.size(); ++i)
      if (const int first = added.steps[i].first; first >= 0)
        added.buffers[static_cast<size_t>(first)] =
            initial_state(added.buffers[static_cast<size_t>(first)], added.buffers[i], node);
  }
  program_.bodies.push_back({.kind = BodyKind::steps,
                             .first = static_cast<int>(program_.launches.size()),
                             .launches = static_cast<int>(launches.size()),
                             .times = groups[0].steps,
                             .backwards = groups[0].backwards});
  for (Launch& launch : launches) program_.launches.push_back(std::move(launch));
}

void ProgramBuilder::emit_body(const ForParts::Attrs& loop) {
  const int launches = static_cast<int>(program_.launches.size()) - entered_;
  for (size_t l = static_cast<size_t>(entered_); l < program_.launches.size(); ++l)
    for (int b : program_.launches[l].buffers) program_.launches[l].steps.push_back({.moves = moves(b)});
  if (launches > 0)
    program_.bodies.push_back(
        {.first = entered_, .launches = launches, .times = Dim(loop.parts), .of = loop.of.empty() ? "part" : loop.of});
}

}  // namespace opfuse
