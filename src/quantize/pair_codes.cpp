// A channel whose largest pair does not fit gets a larger scale, or some of its codes are cut, or a little of both:
// factors are tried in steps of an eighth.
#include "quantize/pair_codes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/parallel.hpp"

namespace opfuse::quantization {
namespace {

constexpr int kMostOfPair = 128, kLargestCode = 127;
constexpr int kFactors = 9;  // 1, 1.125 ... 2, with which every pair fits

float factor_of(int candidate) { return 1 + static_cast<float>(candidate) / (kFactors - 1); }

/// What both are above the bound together is taken from each by half; an odd rest from the one that was rounded up
/// more.
bool fit(float exact_a, float exact_b, int& a, int& b) {
  if (pair_fits(a, b)) return false;
  const int sign = a > 0 ? 1 : -1;
  const int over = std::abs(a) + std::abs(b) - kMostOfPair;
  const float up_a = static_cast<float>(std::abs(a)) - std::fabs(exact_a);
  const float up_b = static_cast<float>(std::abs(b)) - std::fabs(exact_b);
  int of_a = over / 2 + (over % 2 != 0 && up_a > up_b ? 1 : 0);
  of_a = std::min(of_a, std::abs(a));
  of_a = std::max(of_a, over - std::abs(b));
  a -= sign * of_a, b -= sign * (over - of_a);
  return true;
}

int nearest(float exact) {
  return static_cast<int>(std::nearbyint(std::clamp(exact, float{-kLargestCode}, float{kLargestCode})));
}

/// The codes of one channel, in the order of pairs; how many pairs were cut.
int64_t code_channel(std::span<const float> exact, int64_t step, std::span<int> codes) {
  for (size_t i = 0; i < exact.size(); ++i) codes[i] = nearest(exact[i]);
  int64_t cut = 0;
  for (size_t i = 0; i + 1 < exact.size(); i += static_cast<size_t>(step))
    cut += fit(exact[i], exact[i + 1], codes[i], codes[i + 1]) ? 1 : 0;
  return cut;
}

double error_of(std::span<const float> exact, std::span<const int> codes) {
  double error = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    const double d = static_cast<double>(exact[i]) - codes[i];
    error += d * d;
  }
  return error;
}

}  // namespace

bool pair_fits(int a, int b) {
  return std::max(a, 0) + std::max(b, 0) <= kMostOfPair && std::min(a, 0) + std::min(b, 0) >= -kMostOfPair;
}

PairOrder::PairOrder(const std::vector<int64_t>& sizes, size_t axis) : outputs_(sizes[axis]), inputs_(sizes[1 - axis]) {
  for (size_t d = 2; d < sizes.size(); ++d) taps_ *= sizes[d];
  output_step_ = (axis == 0 ? inputs_ : 1) * taps_;
  input_step_ = (axis == 0 ? 1 : outputs_) * taps_;
}

int64_t PairOrder::index(int64_t output, int64_t place) const {
  return output * output_step_ + place % inputs_ * input_step_ + place / inputs_;
}

int64_t PairOrder::place(int64_t element) const {
  const int64_t input = element / input_step_ % inputs_;
  return element % taps_ * inputs_ + input;
}

bool PairOrder::allows(std::span<const int8_t> codes, int64_t i, int code) const {
  if (std::abs(code) > kLargestCode) return false;
  const int64_t at = place(i), output = i / output_step_ % outputs_;
  const auto fits_with = [&](int64_t other) {
    return other < 0 || other >= length() || pair_fits(code, codes[static_cast<size_t>(index(output, other))]);
  };
  if (step() == 2) return fits_with(at ^ 1);
  return fits_with(at - 1) && fits_with(at + 1);
}

std::vector<float> pair_factors(const Tensor& weights, std::span<const float> scales, const PairOrder& order,
                                bool per_channel) {
  const auto w = weights.view<float>();
  const auto count = static_cast<size_t>(order.outputs());
  std::vector<double> errors(count * kFactors, HUGE_VAL);
  parallel_for(order.outputs(), [&](int64_t o) {
    const auto length = static_cast<size_t>(order.length());
    std::vector<float> row(length), exact(length);
    std::vector<int> codes(length);
    for (size_t p = 0; p < length; ++p) row[p] = w[static_cast<size_t>(order.index(o, static_cast<int64_t>(p)))];
    for (int k = 0; k < kFactors; ++k) {
      const float factor = factor_of(k), scale = scales[static_cast<size_t>(o)] * factor;
      for (size_t p = 0; p < length; ++p) exact[p] = row[p] / scale;
      const int64_t cut = code_channel(exact, order.step(), codes);
      errors[static_cast<size_t>(o) * kFactors + static_cast<size_t>(k)] =
          error_of(exact, codes) * static_cast<double>(scale) * static_cast<double>(scale);
      if (per_channel && cut == 0) break;  // larger factors only make steps larger
    }
  });
  if (!per_channel && count > 0)
    for (size_t k = 0; k < kFactors; ++k) {
      double sum = 0;
      for (size_t o = 0; o < count; ++o) sum += errors[o * kFactors + k];
      for (size_t o = 0; o < count; ++o) errors[o * kFactors + k] = sum;
    }
  std::vector<float> factors;
  for (size_t o = 0; o < count; ++o) {
    const auto from = errors.begin() + static_cast<int64_t>(o) * kFactors;
    factors.push_back(factor_of(static_cast<int>(std::min_element(from, from + kFactors) - from)));
  }
  return factors;
}

int64_t fit_pairs(const Tensor& weights, std::span<const float> scales, const PairOrder& order,
                  std::span<int8_t> codes) {
  const auto w = weights.view<float>();
  int64_t moved = 0;
  for (int64_t o = 0; o < order.outputs(); ++o)
    for (int64_t p = 0; p + 1 < order.length(); p += order.step()) {
      const auto i = static_cast<size_t>(order.index(o, p)), j = static_cast<size_t>(order.index(o, p + 1));
      const float scale = scales[static_cast<size_t>(o)];
      int a = codes[i], b = codes[j];
      if (!fit(w[i] / scale, w[j] / scale, a, b)) continue;
      moved += (a != codes[i] ? 1 : 0) + (b != codes[j] ? 1 : 0);
      codes[i] = static_cast<int8_t>(a), codes[j] = static_cast<int8_t>(b);
    }
  return moved;
}

}  // namespace opfuse::quantization
