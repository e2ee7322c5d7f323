// Slices are boxes of the first axis, so the stride of that axis in memory is the way to the next.
#include "program/step_loop.hpp"

#include <algorithm>

#include "base/fail.hpp"

namespace opfuse {

const StepLoop* loop_of(const Program& program, size_t launch) {
  const auto number = static_cast<int>(launch);
  for (const StepLoop& loop : program.step_loops)
    if (loop.first <= number && number < loop.first + loop.launches) return &loop;
  return nullptr;
}

Dim step_bytes(const Program& program, const StepLoop& loop, int buffer) {
  const Buffer& box = program.buffers[static_cast<size_t>(buffer)];
  const auto axis = std::find(box.layout.order.begin(), box.layout.order.end(), 0) - box.layout.order.begin();
  OPFUSE_CHECK(static_cast<size_t>(axis) < box.strides.size(), "a step of a buffer without axes");
  const Dim bytes = box.strides[static_cast<size_t>(axis)] * Dim(static_cast<int64_t>(byte_size(box.type.dtype)));
  return loop.backwards ? Dim(0) - bytes : bytes;
}

}  // namespace opfuse
