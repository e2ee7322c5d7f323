// Strides of buffers and origins of views. A box has the strides of what it is cut from; a reshaped view
// has its own dense ones.
#include "base/fail.hpp"
#include "program/origins.hpp"

namespace opfuse {
namespace {

/// Every buffer once, what it is a view of before it: views of views may be as many as launches.
template <class Visit>
void each_behind_its_parent(const Program& program, Visit visit) {
  std::vector<char> done(program.buffers.size(), 0);
  std::vector<int> open;
  for (size_t i = 0; i < done.size(); ++i) {
    for (int at = static_cast<int>(i); at >= 0 && !done[static_cast<size_t>(at)];
         at = program.buffers[static_cast<size_t>(at)].view_of) {
      OPFUSE_CHECK(open.size() < done.size(), "views of buffer {} form a cycle", i);
      open.push_back(at);
    }
    for (; !open.empty(); open.pop_back()) visit(open.back()), done[static_cast<size_t>(open.back())] = 1;
  }
}

/// Elements from the start of what a view is a part of to its own.
Dim offset_in_parent(const Program& program, const Buffer& view) {
  Dim origin = 0;
  if (view.view_of < 0 || view.view_offset.empty()) return origin;
  const std::vector<Dim>& strides = program.buffers[static_cast<size_t>(view.view_of)].strides;
  for (size_t i = 0; i < view.layout.order.size(); ++i) {
    const int axis = view.layout.order[i];
    const Dim& offset = view.view_offset[static_cast<size_t>(axis)];
    if (offset == Dim(0)) continue;
    origin = origin + floor_div(offset, Dim(view.layout.block_of(axis))) * strides[i];
  }
  return origin;
}

}  // namespace

void assign_strides(Program& program) {
  each_behind_its_parent(program, [&](int index) {
    Buffer& buffer = program.buffers[static_cast<size_t>(index)];
    const bool box = buffer.view_of >= 0 && !buffer.view_offset.empty();
    buffer.strides = box ? program.buffers[static_cast<size_t>(buffer.view_of)].strides
                         : dense_strides(buffer.layout, buffer.type.shape);
  });
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
  for (int at = index; at >= 0; at = program.buffers[static_cast<size_t>(at)].view_of)
    origin = origin + offset_in_parent(program, program.buffers[static_cast<size_t>(at)]);
  return origin;
}

std::vector<Dim> origins_in_roots(const Program& program) {
  std::vector<Dim> origins(program.buffers.size(), 0);
  each_behind_its_parent(program, [&](int index) {
    const Buffer& buffer = program.buffers[static_cast<size_t>(index)];
    if (buffer.view_of < 0) return;
    origins[static_cast<size_t>(index)] =
        origins[static_cast<size_t>(buffer.view_of)] + offset_in_parent(program, buffer);
  });
  return origins;
}

Dim bytes_of(const Buffer& buffer) {
  return buffer.layout.physical_elements(buffer.type.shape) * Dim(static_cast<int64_t>(byte_size(buffer.type.dtype)));
}

}  // namespace opfuse
