#include "quantize/scale_channels.hpp"

namespace opfuse::quantization {
namespace {

/// `lanes`: of a block, where compilers know it; else 0.
template <size_t lanes>
void scale_row(float* x, size_t count, const float* factors, size_t block) {
  const size_t step = lanes ? lanes : block;
  for (size_t i = 0; i < count; i += step)
    for (size_t l = 0; l < step; ++l) x[i + l] *= factors[l];
}

}  // namespace

void scale_channels(const ArrayView& array, const std::optional<ChannelBlocks>& blocks, size_t axis,
                    const std::vector<double>& factors) {
  const bool in_blocks = blocks && blocks->axis == axis;
  const auto block = static_cast<size_t>(in_blocks ? array.shape.back() : 1);
  const auto rows = static_cast<size_t>(array.shape[axis]);  // of channels, or of blocks of them
  size_t outer = 1, inner = 1;
  for (size_t d = 0; d < axis; ++d) outer *= static_cast<size_t>(array.shape[d]);
  for (size_t d = axis + 1; d < array.shape.size(); ++d) inner *= static_cast<size_t>(array.shape[d]);
  std::vector<float> by(factors.begin(), factors.end());
  by.resize(rows * block, 1);  // padding lanes
  const auto scale = block == 1 ? scale_row<1> : block == 8 ? scale_row<8> : block == 16 ? scale_row<16> : scale_row<0>;
  auto* x = static_cast<float*>(array.data);
  for (size_t row = 0; row < outer * rows; ++row, x += inner) scale(x, inner, by.data() + row % rows * block, block);
}

}  // namespace opfuse::quantization
