// Parts and slices are boxes of the first axis, so the stride of that axis in memory is the way to the next.
#include "program/body.hpp"

#include <algorithm>

#include "base/fail.hpp"

namespace opfuse {

const Body* body_of(const Program& program, size_t launch) {
  const auto number = static_cast<int>(launch);
  for (const Body& body : program.bodies)
    if (body.first <= number && number < body.first + body.launches) return &body;
  return nullptr;
}

bool always_runs(const Body& body) { return body.symbol.empty(); }

Dim moved_bytes(const Program& program, const Body& body, int buffer) {
  const Buffer& box = program.buffers[static_cast<size_t>(buffer)];
  const auto axis = std::find(box.layout.order.begin(), box.layout.order.end(), 0) - box.layout.order.begin();
  OPFUSE_CHECK(static_cast<size_t>(axis) < box.strides.size(), "a part of a buffer without axes");
  Dim bytes = box.strides[static_cast<size_t>(axis)] * Dim(static_cast<int64_t>(byte_size(box.type.dtype)));
  if (body.kind == BodyKind::parts && always_runs(body)) bytes = bytes * box.type.shape[0];
  return body.backwards ? Dim(0) - bytes : bytes;
}

}  // namespace opfuse
