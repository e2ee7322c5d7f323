// scale = max |w| / 127 of the channel, so that no weight saturates. A channel of zeros keeps the mean scale of the
// others: its bias then has codes as fine as theirs.
//
// The taps of a window read neighbours, which are nearly equal, so their rounding errors e add up. With r the
// correlation of neighbours, the noise is (1 - r) sum e^2 + r (sum e)^2: codes move by one while that falls, those near
// a half first.
#include "quantize/weight_codes.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <span>

#include "base/fail.hpp"
#include "quantize/pair_codes.hpp"

namespace opfuse::quantization {
namespace {

constexpr double kLargestWeight = 127, kLargestBias = 1 << 30;
constexpr double kNeighbours = 0.5;  // r; 0.3 to 0.8 give EfficientNet-Lite0's depthwise weights the same within 0.6 dB

/// Elements of one channel lie `inner` apart in runs.
struct Channels {
  size_t count, inner = 1;
  Channels(const std::vector<int64_t>& sizes, size_t axis) : count(static_cast<size_t>(sizes[axis])) {
    for (size_t d = axis + 1; d < sizes.size(); ++d) inner *= static_cast<size_t>(sizes[d]);
  }
  size_t of(size_t i) const { return i / inner % count; }

  /// take(channel, element) for all elements, in their order.
  template <class F>
  void each(size_t elements, F&& take) const {
    for (size_t i = 0; i < elements;)
      for (size_t c = 0; c < count; ++c)
        for (const size_t end = i + inner; i < end; ++i) take(c, i);
  }
};

/// Half to even, of numbers below 2^22: those that are added have no binary places left. Vectors take it,
/// std::nearbyint not.
float rounded(float x) {
  constexpr float kNoPlaces = 3 << 22;
  return (x + kNoPlaces) - kNoPlaces;
}

/// Whether the code at an element may become another.
using Allows = std::function<bool(size_t element, int code)>;

/// Of one window that begins at `from`; `exact`: its weights in units of the scale. How many codes moved.
int64_t keep_sum(std::span<const double> exact, size_t from, std::span<int8_t> all, const Allows& allows) {
  const std::span<int8_t> codes = all.subspan(from, exact.size());
  double sum = 0;
  int64_t moved = 0;
  for (size_t i = 0; i < exact.size(); ++i) sum += codes[i] - exact[i];
  while (true) {
    const int step = sum > 0 ? -1 : 1;  // the other way raises both terms
    const double of_sum = kNeighbours * (2 * step * sum + 1);
    double least = -1e-9;
    size_t best = exact.size();
    for (size_t i = 0; i < exact.size(); ++i) {
      const double change = (1 - kNeighbours) * (2 * step * (codes[i] - exact[i]) + 1) + of_sum;
      if (change < least && allows(from + i, codes[i] + step)) least = change, best = i;
    }
    if (best == exact.size()) return moved;
    codes[best] = static_cast<int8_t>(codes[best] + step), sum += step, ++moved;
  }
}

/// Windows of [O, C, taps...].
int64_t keep_sums(const Tensor& weights, const Channels& channels, std::span<const float> scales,
                  std::span<int8_t> codes, const Allows& allows) {
  size_t taps = 1;
  for (size_t d = 2; d < weights.rank(); ++d) taps *= static_cast<size_t>(weights.sizes()[d]);
  if (taps < 2) return 0;
  const auto w = weights.view<float>();
  std::vector<double> exact(taps);
  int64_t moved = 0;
  for (size_t from = 0; from < w.size(); from += taps) {
    const auto scale = static_cast<double>(scales[channels.of(from)]);
    for (size_t t = 0; t < taps; ++t) exact[t] = static_cast<double>(w[from + t]) / scale;
    moved += keep_sum(exact, from, codes, allows);
  }
  return moved;
}

}  // namespace

WeightCodes weight_codes(const Tensor& weights, size_t axis, const WeightOptions& options) {
  const Channels channels(weights.sizes(), axis);
  const auto w = weights.view<float>();
  std::vector<double> most(channels.count);
  channels.each(w.size(),
                [&](size_t c, size_t i) { most[c] = std::max(most[c], std::fabs(static_cast<double>(w[i]))); });
  WeightCodes made{Tensor(DType::i8, weights.sizes()), Tensor(DType::f32, {static_cast<int64_t>(channels.count)}),
                   Tensor(DType::i8, {static_cast<int64_t>(channels.count)})};
  made.dead = std::count(most.begin(), most.end(), 0.0);
  double mean = 0;
  for (double m : most) mean += m;
  const auto alive = static_cast<double>(static_cast<int64_t>(channels.count) - made.dead);
  mean = alive > 0 ? mean / alive : kLargestWeight;
  auto scales = made.scales.mutable_view<float>();
  for (size_t c = 0; c < channels.count; ++c) {
    const double scale =
        std::max((most[c] > 0 ? most[c] : mean) / kLargestWeight, options.least.empty() ? 0.0 : options.least[c]);
    scales[c] = std::max(static_cast<float>(scale), FLT_MIN);
  }
  if (!options.per_channel && channels.count > 0)
    std::fill(scales.begin(), scales.end(), *std::max_element(scales.begin(), scales.end()));
  const PairOrder order(weights.sizes(), axis);
  if (options.int16_pairs) {
    const std::vector<float> factors = pair_factors(weights, scales, order, options.per_channel);
    for (size_t c = 0; c < channels.count; ++c) scales[c] *= factors[c];
  }
  auto codes = made.codes.mutable_view<int8_t>();
  channels.each(w.size(), [&](size_t c, size_t i) {
    codes[i] = static_cast<int8_t>(rounded(std::clamp(w[i] / scales[c], -127.0f, 127.0f)));
  });
  if (options.int16_pairs) made.cut = fit_pairs(weights, scales, order, codes);
  const auto allows = [&](size_t i, int code) {
    return options.int16_pairs ? order.allows(codes, static_cast<int64_t>(i), code) : std::abs(code) <= 127;
  };
  if (axis == 0 && options.window_sums) made.moved = keep_sums(weights, channels, scales, codes, allows);
  double energy = 0, error = 0;
  channels.each(w.size(), [&](size_t c, size_t i) {
    const double x = static_cast<double>(w[i]), d = x - codes[i] * static_cast<double>(scales[c]);
    energy += x * x, error += d * d;
  });
  made.sqnr = error > 0 ? 10 * std::log10(energy / error) : 0;
  return made;
}

bool parse_pair_sums(std::string_view text) {
  if (text != pair_sums_name(true) && text != pair_sums_name(false))
    throw fail(E::bad_option, "sums of pairs are {} or {}, not '{}'", pair_sums_name(true), pair_sums_name(false),
               text);
  return text == pair_sums_name(true);
}

const char* pair_sums_name(bool int16_pairs) { return int16_pairs ? "int16" : "int32"; }

bool parse_rounding(std::string_view text) {
  if (text != rounding_name(true) && text != rounding_name(false))
    throw fail(E::bad_option, "weights are rounded by {} or to the {}, not '{}'", rounding_name(true),
               rounding_name(false), text);
  return text == rounding_name(true);
}

const char* rounding_name(bool window_sums) { return window_sums ? "window-sums" : "nearest"; }

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
