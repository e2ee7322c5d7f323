// Strides of buffers and origins of views. A box has the strides of what it is cut from; a reshaped view
// has its own dense ones.
#include "base/fail.hpp"
#include "program/program.hpp"

namespace opfuse {
namespace {

std::vector<Dim> strides_of(const Program& program, int index) {
  const Buffer* buffer = &program.buffers[static_cast<size_t>(index)];
  while (buffer->view_of >= 0 && !buffer->view_offset.empty())
    buffer = &program.buffers[static_cast<size_t>(buffer->view_of)];
  return dense_strides(buffer->layout, buffer->type.shape);
}

}  // namespace

void assign_strides(Program& program) {
  for (size_t i = 0; i < program.buffers.size(); ++i)
    program.buffers[i].strides = strides_of(program, static_cast<int>(i));
}

int root_of(const Program& program, int buffer) {
  for (size_t guard = 0; program.buffers[static_cast<size_t>(buffer)].view_of >= 0; ++guard) {
    OPFUSE_CHECK(guard <= program.buffers.size(), "views of buffer {} form a cycle", buffer);
    buffer = program.buffers[static_cast<size_t>(buffer)].view_of;
  }
  return buffer;
}

std::vector<int> roots_of(const Program& program) {
  std::vector<int> roots(program.buffers.size(), -1), views;
  for (size_t i = 0; i < roots.size(); ++i) {
    int at = static_cast<int>(i);
    while (roots[static_cast<size_t>(at)] < 0 && program.buffers[static_cast<size_t>(at)].view_of >= 0) {
      OPFUSE_CHECK(views.size() < roots.size(), "views of buffer {} form a cycle", i);
      views.push_back(at);
      at = program.buffers[static_cast<size_t>(at)].view_of;
    }
    const int known = roots[static_cast<size_t>(at)], root = known < 0 ? at : known;
    roots[static_cast<size_t>(at)] = root;
    for (int view : views) roots[static_cast<size_t>(view)] = root;
    views.clear();
  }
  return roots;
}

Dim origin_in_root(const Program& program, int index) {
  Dim origin = 0;
  for (const Buffer* buffer = &program.buffers[static_cast<size_t>(index)]; buffer->view_of >= 0;
       buffer = &program.buffers[static_cast<size_t>(buffer->view_of)]) {
    if (buffer->view_offset.empty()) continue;
    const Layout& layout = buffer->layout;
    const std::vector<Dim> strides = strides_of(program, buffer->view_of);
    for (size_t i = 0; i < layout.order.size(); ++i) {
      const int axis = layout.order[i];
      const Dim& offset = buffer->view_offset[static_cast<size_t>(axis)];
      if (offset == Dim(0)) continue;
      origin = origin + floor_div(offset, Dim(layout.block_of(axis))) * strides[i];
    }
  }
  return origin;
}

Dim bytes_of(const Buffer& buffer) {
  return buffer.layout.physical_elements(buffer.type.shape) * Dim(static_cast<int64_t>(byte_size(buffer.type.dtype)));
}

}  // namespace opfuse
