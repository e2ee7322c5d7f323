#include "tune/own_weights.hpp"

#include <algorithm>

namespace opfuse {

void lay_out_weights(Program& program, Launch& launch, size_t index, const Layout& layout) {
  int& at = launch.buffers[index];
  const auto readers = std::count_if(program.launches.begin(), program.launches.end(), [&](const Launch& other) {
    return std::find(other.buffers.begin(), other.buffers.end(), at) != other.buffers.end();
  });
  if (readers > 1) {
    program.buffers.push_back(program.buffers[static_cast<size_t>(at)]);
    at = static_cast<int>(program.buffers.size()) - 1;
  }
  Buffer& buffer = program.buffers[static_cast<size_t>(at)];
  buffer.layout = layout;
  buffer.strides = dense_strides(layout, buffer.type.shape);
}

}  // namespace opfuse
