// scale = max |w| / 127 of the channel, so that no weight saturates. A channel of zeros keeps the mean scale of the
// others: its bias then has codes as fine as theirs.
#include "quantize/weight_codes.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace opfuse::quantization {
namespace {

constexpr double kLargestWeight = 127, kLargestBias = 1 << 30;

/// Elements of one channel lie `inner` apart in runs.
struct Channels {
  size_t count, inner = 1;
  Channels(const std::vector<int64_t>& sizes, size_t axis) : count(static_cast<size_t>(sizes[axis])) {
    for (size_t d = axis + 1; d < sizes.size(); ++d) inner *= static_cast<size_t>(sizes[d]);
  }
  size_t of(size_t i) const { return i / inner % count; }
};

}  // namespace

double WeightCodes::real(int64_t i, size_t axis) const {
  const auto c = static_cast<int64_t>(Channels(codes.sizes(), axis).of(static_cast<size_t>(i)));
  return static_cast<double>(codes.integer(i)) * scales.real(c);
}

WeightCodes weight_codes(const Tensor& weights, size_t axis, const std::vector<double>& least, bool per_channel) {
  const Channels channels(weights.sizes(), axis);
  const auto w = weights.view<float>();
  std::vector<double> most(channels.count);
  for (size_t i = 0; i < w.size(); ++i)
    most[channels.of(i)] = std::max(most[channels.of(i)], std::fabs(static_cast<double>(w[i])));
  WeightCodes made{Tensor(DType::i8, weights.sizes()), Tensor(DType::f32, {static_cast<int64_t>(channels.count)}),
                   Tensor(DType::i8, {static_cast<int64_t>(channels.count)})};
  made.dead = std::count(most.begin(), most.end(), 0.0);
  double mean = 0;
  for (double m : most) mean += m;
  const auto alive = static_cast<double>(static_cast<int64_t>(channels.count) - made.dead);
  mean = alive > 0 ? mean / alive : kLargestWeight;
  auto scales = made.scales.mutable_view<float>();
  for (size_t c = 0; c < channels.count; ++c) {
    const double scale = std::max((most[c] > 0 ? most[c] : mean) / kLargestWeight, least.empty() ? 0.0 : least[c]);
    scales[c] = std::max(static_cast<float>(scale), FLT_MIN);
  }
  if (!per_channel && channels.count > 0)
    std::fill(scales.begin(), scales.end(), *std::max_element(scales.begin(), scales.end()));
  auto codes = made.codes.mutable_view<int8_t>();
  double energy = 0, error = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    const float scale = scales[channels.of(i)];
    const float code = std::clamp(std::nearbyint(w[i] / scale), -127.0f, 127.0f);
    codes[i] = static_cast<int8_t>(code);
    const double x = static_cast<double>(w[i]), d = x - static_cast<double>(code) * static_cast<double>(scale);
    energy += x * x, error += d * d;
  }
  made.sqnr = error > 0 ? 10 * std::log10(energy / error) : 0;
  return made;
}

BiasCodes bias_codes(const std::vector<double>& bias, float data_scale, const Tensor& weight_scales) {
  const auto count = static_cast<int64_t>(bias.size());
  BiasCodes made{Tensor(DType::i32, {count}), Tensor(DType::f32, {count})};
  for (int64_t c = 0; c < count; ++c) {
    const float scale = data_scale * weight_scales.view<float>()[static_cast<size_t>(c)];
    made.scales.mutable_view<float>()[static_cast<size_t>(c)] = scale;
    const double code = std::nearbyint(bias[static_cast<size_t>(c)] / static_cast<double>(scale));
    made.codes.set_integer(c, static_cast<int64_t>(std::clamp(code, -2.0 * kLargestBias, 2.0 * kLargestBias - 1)));
  }
  return made;
}

std::vector<double> least_scales(const std::vector<double>& bias, float data_scale) {
  std::vector<double> least;
  for (double b : bias) least.push_back(std::fabs(b) / (static_cast<double>(data_scale) * kLargestBias));
  return least;
}

}  // namespace opfuse::quantization
