// Views where memory allows them, copies where not: reshapes, parts of a value, concatenations.
#include <fmt/format.h>

#include <algorithm>

#include "program/layout_facts.hpp"
#include "program/program_builder.hpp"

namespace opfuse {

int ProgramBuilder::reshape_root(int index) {
  while (buffer(index).view_of >= 0 && buffer(index).view_offset.empty()) index = buffer(index).view_of;
  return index;
}

void ProgramBuilder::emit_reshape(const Node& node) {
  const int from = find(node.input(0)), to = find(node.output());
  if (from >= 0 && make_reshape(from, to)) return;
  launch_all(node, lowered(node, options_));
}

bool ProgramBuilder::make_reshape(int from, int to) {
  const int root = reshape_root(from);
  if (buffer(root).view_of >= 0) return false;  // part of a larger buffer
  const bool same = buffer(from).type.shape == buffer(to).type.shape && buffer(from).layout == buffer(to).layout;
  const bool in_order = stores_row_major(buffer(from).layout, buffer(from).type.shape) &&
                        stores_row_major(buffer(to).layout, buffer(to).type.shape);
  if (!same && !in_order) return false;
  if (buffer(to).kind == BufferKind::intermediate) {
    buffer(to).view_of = from;
    if (!in_order) buffer(to).view_offset.assign(buffer(to).type.shape.rank(), Dim(0));
    return true;
  }
  // A graph output: what was to be reshaped is computed in the caller's array instead.
  if (!is_there_for(to, root, {})) return false;
  if (buffer(root).kind != BufferKind::intermediate || !in_order) return false;
  if (!stores_row_major(buffer(root).layout, buffer(root).type.shape)) return false;
  buffer(root).view_of = to;
  return true;
}

void ProgramBuilder::emit_box(const WorkItem& item) {
  const Node& node = *item.node;
  const int whole = find(item.whole);
  for (size_t i = 0; i < item.parts.size(); ++i) {
    const int part = find(item.parts[i]);
    if (part < 0) continue;
    const bool view =
        whole >= 0 && buffer(part).kind == BufferKind::intermediate && buffer(part).layout == buffer(whole).layout &&
        box_fits_blocks(buffer(whole).layout, buffer(whole).type.shape, item.offsets[i], buffer(part).type.shape) &&
        !(moves(whole) && cuts_rows(part, whole));
    if (view) {
      buffer(part).view_of = whole;
      buffer(part).view_offset = item.offsets[i];
      if (node.op == for_parts_op()) moving_.insert(part);
      continue;
    }
    if (node.op == for_parts_op()) {  // what moves is a box; from there to where the part wants to lie
      const int box = add_box(whole, buffer(part).name, item.parts[i]->type, item.offsets[i]);
      moving_.insert(box);
      launch_copy(box, part, node, fmt::format("{}.part", buffer(part).name));
      continue;
    }
    const LoweredGroup copy = copy_group(item.whole, item.parts[i], item.parts[i]->type.shape, item.offsets[i]);
    launch(node, copy, wish(copy.region).params,
           item.parts.size() == 1 ? launch_name(node) : fmt::format("{}[{}]", launch_name(node), i));
  }
}

bool ProgramBuilder::has_reshaped_views(int index) const {
  return std::any_of(program_.buffers.begin(), program_.buffers.end(),
                     [&](const Buffer& b) { return b.view_of == index && b.view_offset.empty(); });
}

bool ProgramBuilder::cuts_rows(int part, int whole) const {
  const Shape &own = program_.buffers[static_cast<size_t>(part)].type.shape,
              &all = program_.buffers[static_cast<size_t>(whole)].type.shape;
  return own.rank() == 0 || !(own[0] == all[0]);
}

bool ProgramBuilder::has_rows_cut(int whole) const {
  for (size_t i = 0; i < program_.buffers.size(); ++i)
    if (const int b = static_cast<int>(i);
        program_.buffers[i].view_of == whole && (cuts_rows(b, whole) || has_rows_cut(b)))
      return true;
  return false;
}

bool ProgramBuilder::is_there_for(int whole, int part, const std::vector<Dim>& offset) {
  const int level = levels_.of(buffer(part).type.shape.dims);
  return levels_.of(buffer(whole).type.shape.dims) <= level && levels_.of(offset) <= level;
}

void ProgramBuilder::emit_concat(const WorkItem& item) {
  const Node& node = *item.node;
  const int whole = find(item.whole);
  for (size_t i = 0; i < item.parts.size(); ++i)
    if (!box_fits_blocks(buffer(whole).layout, buffer(whole).type.shape, item.offsets[i], item.parts[i]->type.shape))
      return launch_all(node, lowered(node, options_));
  for (size_t i = 0; i < item.parts.size(); ++i) {
    const Value* value = item.parts[i];
    const int part = find(value);
    const bool view = part >= 0 && buffer(part).kind == BufferKind::intermediate && buffer(part).view_of < 0 &&
                      buffer(part).layout == buffer(whole).layout && !has_reshaped_views(part) &&
                      reshape_root(whole) != part && is_there_for(whole, part, item.offsets[i]) &&
                      !(node.op == for_parts_op() && has_rows_cut(part));
    if (view) {
      buffer(part).view_of = whole;
      buffer(part).view_offset = item.offsets[i];
      if (node.op == for_parts_op()) moving_.insert(part);
      continue;
    }
    const int box = add_box(whole, fmt::format("{}[{}]", buffer_name(item.whole), i), value->type, item.offsets[i]);
    if (node.op == for_parts_op()) moving_.insert(box);
    const Node& maker = node.op == for_parts_op() && value->producer ? *value->producer : node;
    launch_copy(value, box, maker, fmt::format("{}[{}]", launch_name(maker), i));
  }
}

bool ProgramBuilder::moves(int index) {
  while (index >= 0 && !moving_.contains(index)) index = buffer(index).view_of;
  return index >= 0;
}

}  // namespace opfuse
