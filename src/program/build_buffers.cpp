// Buffers of a program: graph values, boxes of others, constants, inputs copied into blocks.
#include <fmt/format.h>

#include "program/program_builder.hpp"

namespace opfuse {

std::string ProgramBuilder::buffer_name(const Value* value) {
  return value->name.empty() ? fmt::format("%{}", value->id) : value->name;
}

int ProgramBuilder::add_buffer(BufferKind kind, const std::string& name, const TensorType& type) {
  Buffer added;
  added.kind = kind;
  added.name = name;
  added.type = type;
  added.layout = Layout::dense(type.shape.rank());
  program_.buffers.push_back(std::move(added));
  return static_cast<int>(program_.buffers.size()) - 1;
}

int ProgramBuilder::add_box(int whole, const std::string& name, const TensorType& type,
                            const std::vector<Dim>& offset) {
  const int box = add_buffer(BufferKind::intermediate, name, type);
  buffer(box).layout = buffer(whole).layout;
  buffer(box).view_of = whole;
  buffer(box).view_offset = offset;
  return box;
}

void ProgramBuilder::make_buffers() {
  for (const Value* input : work_.graph.inputs()) {
    const int index = add_buffer(BufferKind::input, input->name, input->type);
    buffers_[input] = index;
    program_.inputs.push_back(index);
  }
  for (const Value* output : work_.graph.outputs()) {
    const int index = add_buffer(BufferKind::output, output->name, output->type);
    if (output->producer != nullptr && !buffers_.contains(output))
      buffers_[output] = index;
    else
      copies_.emplace_back(output, index);
    program_.outputs.push_back(index);
  }
  for (const WorkItem& item : work_.items) {
    if (item.node->op == for_parts_op() && item.kind == WorkKind::box)
      for (const Value* part : item.parts)
        buffers_[part] = add_buffer(BufferKind::intermediate, part->name, part->type);
    if (item.node->op == for_parts_op() && item.kind != WorkKind::concat) continue;
    for (const Value* result : item.node->outputs)
      if (!buffers_.contains(result) && produced(item, result))
        buffers_[result] = add_buffer(BufferKind::intermediate, buffer_name(result), result->type);
  }
  for (const auto& value : work_.temporaries)
    buffers_[value.get()] = add_buffer(BufferKind::intermediate, "", value->type);
}

bool ProgramBuilder::produced(const WorkItem& item, const Value* result) const {
  if (item.kind == WorkKind::reference) return result->type.dtype != DType::unknown;
  if (item.kind == WorkKind::concat) return result == item.whole;
  if (item.kind != WorkKind::launch) return work_.graph.read_count(result) > 0;
  for (const LoweredGroup& group : item.groups)
    for (size_t i = 0; i < group.operands.size(); ++i)
      if (group.region.params[i].role == ParamRole::output && group.operands[i].value == result) return true;
  return false;
}

int ProgramBuilder::find(const Value* value) const {
  const auto it = buffers_.find(value);
  return it == buffers_.end() ? -1 : it->second;
}

int ProgramBuilder::constant_buffer(const LoweredOperand& operand, const Param& param,
                                    const std::optional<Layout>& wished, const std::string& owner) {
  const Layout layout = wished.value_or(Layout::dense(param.type.shape.rank()));
  const auto key = std::make_pair(operand.value, layout.text());
  if (operand.value != nullptr)
    if (const auto it = constants_.find(key); it != constants_.end()) return it->second;
  const std::string name = operand.value != nullptr ? operand.value->name : owner + ".made";
  const int index = add_buffer(BufferKind::constant, name, param.type);
  buffer(index).layout = layout;
  buffer(index).constant = operand.bytes();
  const Value* source = operand.value != nullptr ? operand.value : operand.from;
  buffer(index).quantised =
      source != nullptr && source->is_constant() && options_.quantised.contains(source->constant->data());
  if (operand.value != nullptr) constants_[key] = index;
  return index;
}

bool ProgramBuilder::wants_copy(const Launch& launch, size_t i, const Layout& wished) {
  const Buffer& given = buffer(launch.buffers[i]);
  if (!options_.copy_of_input_pays || in_body_ || given.kind != BufferKind::input || given.layout == wished)
    return false;
  std::vector<Layout> layouts;
  for (int b : launch.buffers) {
    if (buffer(b).quantised) return false;  // such weights stay direct
    layouts.push_back(buffer(b).layout);
  }
  layouts[i] = wished;
  return options_.copy_of_input_pays(launch.region, i, layouts);
}

std::vector<size_t> ProgramBuilder::without_kernel(const Launch& launch,
                                                   const std::vector<std::optional<Layout>>& wishes) const {
  std::vector<size_t> elsewhere;
  std::vector<Layout> layouts;
  for (size_t i = 0; i < launch.buffers.size(); ++i) {
    const Buffer& b = program_.buffers[static_cast<size_t>(launch.buffers[i])];
    layouts.push_back(b.layout);
    const bool operand = launch.region.params[i].role == ParamRole::input && b.type.dtype == DType::bf16;
    if (operand && wishes[i] && !(b.layout == *wishes[i])) elsewhere.push_back(i);
  }
  return elsewhere.empty() || has_kernel(launch.region, layouts) ? std::vector<size_t>{} : elsewhere;
}

int ProgramBuilder::copy_in_blocks(int from, const Layout& layout, const Node& node, const char* reason) {
  const auto [at, fresh] = copies_in_blocks_.emplace(std::tuple(from, layout.text(), in_body_ ? entered_ : -1), -1);
  if (!fresh) return at->second;
  const std::string name = fmt::format("{}[blocks]", buffer(from).name);
  const int copy = add_buffer(BufferKind::intermediate, name, buffer(from).type);
  buffer(copy).layout = layout;
  launch_copy(from, copy, node, fmt::format("{}.input", launch_name(node)));
  program_.notes.push_back(fmt::format("{}\"{}\" is copied into blocks of channels: {} {}",
                                       buffer(from).kind == BufferKind::input ? "input " : "", buffer(from).name,
                                       launch_name(node), reason));
  return at->second = copy;
}

}  // namespace opfuse
