// Arrays in blocks of channels, the last block padded: each channel by its own factor, padding as it was.
#include "quantize/scale_channels.hpp"

#include <gtest/gtest.h>

#include "base/product_of.hpp"

namespace opfuse::quantization {
namespace {

constexpr int64_t kImages = 2, kChannels = 12, kPixels = 6;  // two blocks of 8, one of 16, three of 4 or 5

std::vector<double> factors_of(int64_t count) {
  std::vector<double> factors;
  for (int64_t c = 0; c < count; ++c) factors.push_back(1 + 0.25 * static_cast<double>(c));
  return factors;
}

std::vector<float> numbers(const std::vector<int64_t>& sizes) {
  std::vector<float> x(static_cast<size_t>(product_of(sizes)));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
  return x;
}

TEST(ScaleChannels, ByTheChannelOfEachLaneAndNotPadding) {
  const std::vector<double> factors = factors_of(kChannels);
  for (const int64_t block : {4, 5, 8, 16}) {
    const int64_t blocks = (kChannels + block - 1) / block;
    const std::vector<int64_t> sizes{kImages, blocks, kPixels, block};
    std::vector<float> x = numbers(sizes);
    const std::vector<float> before = x;
    scale_channels({DType::f32, x.data(), sizes}, ChannelBlocks{1, kChannels}, 1, factors);
    for (size_t i = 0; i < x.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const int64_t channel = at / block / kPixels % blocks * block + at % block;
      const double factor = channel < kChannels ? factors[static_cast<size_t>(channel)] : 1;
      ASSERT_EQ(x[i], before[i] * static_cast<float>(factor)) << "block " << block << ", element " << i;
    }
  }
}

/// Dense, and along another axis than that of the blocks.
TEST(ScaleChannels, AlongAnAxisWithoutBlocks) {
  const std::vector<int64_t> dense{kImages, kChannels, kPixels}, in_blocks{kImages, 3, kPixels, 4};
  for (const auto& [sizes, blocks, axis] :
       {std::tuple{dense, std::optional<ChannelBlocks>{}, size_t{1}},
        std::tuple{dense, std::optional<ChannelBlocks>{}, size_t{2}},
        std::tuple{in_blocks, std::optional(ChannelBlocks{1, kChannels}), size_t{2}}}) {
    const std::vector<double> factors = factors_of(sizes[axis]);
    std::vector<float> x = numbers(sizes);
    const std::vector<float> before = x;
    scale_channels({DType::f32, x.data(), sizes}, blocks, axis, factors);
    const int64_t inner = product_of(std::span(sizes).subspan(axis + 1));
    for (size_t i = 0; i < x.size(); ++i) {
      const auto channel = static_cast<size_t>(static_cast<int64_t>(i) / inner % sizes[axis]);
      ASSERT_EQ(x[i], before[i] * static_cast<float>(factors[channel])) << sizes.size() << " axes, element " << i;
    }
  }
}

}  // namespace
}  // namespace opfuse::quantization
