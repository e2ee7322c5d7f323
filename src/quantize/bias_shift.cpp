//     shift[o] = sum over c, t of (w_q - w)[o, c, t] * mean[c] * inside[t]
//
// inside[t]: the share of results whose tap t lies in the image, padding being 0. Taps along several axes count as the
// product of their shares.
#include "quantize/bias_shift.hpp"

#include "ops/conv.hpp"
#include "ops/is_a.hpp"
#include "quantize/linear_size.hpp"

namespace opfuse::quantization {
namespace {

/// Shares by tap of one axis; 1 where extents are open.
std::vector<double> shares_of(const WindowAxis& axis) {
  std::vector<double> shares(static_cast<size_t>(axis.kernel), 1);
  if (!axis.in.is_constant() || !axis.out.is_constant() || !axis.pad_begin.is_constant() || axis.out == Dim(0))
    return shares;
  for (int64_t t = 0; t < axis.kernel; ++t) {
    int64_t inside = 0;
    for (int64_t o = 0; o < axis.out.value(); ++o) {
      const int64_t at = o * axis.stride - axis.pad_begin.value() + t * axis.dilation;
      inside += at >= 0 && at < axis.in.value() ? 1 : 0;
    }
    shares[static_cast<size_t>(t)] = static_cast<double>(inside) / static_cast<double>(axis.out.value());
  }
  return shares;
}

/// By tap, the last axis fastest.
std::vector<double> taps_inside(const Node& conv, const Tensor& weights) {
  std::vector<double> inside{1};
  const Shape w = Shape::of(weights.sizes());
  for (const WindowAxis& axis : Conv::window(conv.as<Conv>(), conv.input(0)->type.shape, w)) {
    std::vector<double> longer;
    for (double outer : inside)
      for (double share : shares_of(axis)) longer.push_back(outer * share);
    inside = std::move(longer);
  }
  return inside;
}

}  // namespace

std::vector<double> bias_shift(const Node& product, const Tensor& weights, const WeightCodes& codes, size_t axis,
                               const TensorStatistics& data) {
  const std::vector<int64_t>& sizes = weights.sizes();
  const bool conv = is_a<Conv>(product);
  const std::vector<double> inside = conv ? taps_inside(product, weights) : std::vector<double>{1};
  const int64_t outputs = sizes[axis], inputs = sizes[1 - axis];
  const int64_t group = conv ? product.as<Conv>().group : 1;
  const auto w = weights.view<float>();
  const auto scales = codes.scales.view<float>();
  const auto code = codes.codes.view<int8_t>();
  std::vector<double> shift(static_cast<size_t>(outputs)), means;
  for (size_t c = 0; c < data.channel_sums.size(); ++c) means.push_back(data.channel_mean(c));
  const auto add = [&](int64_t o, int64_t c, size_t at) {
    const double scale = static_cast<double>(scales[static_cast<size_t>(o)]);
    const double mean = means[static_cast<size_t>(conv ? o / (outputs / group) * inputs + c : c)];
    double& sum = shift[static_cast<size_t>(o)];
    for (size_t t = 0; t < inside.size(); ++t, ++at)
      sum += (code[at] * scale - static_cast<double>(w[at])) * mean * inside[t];
  };
  size_t at = 0;
  for (int64_t first = 0; first < sizes[0]; ++first)
    for (int64_t second = 0; second < sizes[1]; ++second, at += inside.size())
      axis == 0 ? add(first, second, at) : add(second, first, at);
  return shift;
}

}  // namespace opfuse::quantization
