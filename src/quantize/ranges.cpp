// minmax      the whole range                     ema       moving averages of the samples' ranges
// percentile  what leaves (100 - p) % outside, halved where there are numbers of both signs
// mse         the range of least expected error: step^2 / 12 for each element inside but exact zeros, the distance for
//             each beyond
// entropy     the threshold whose quantised histogram has the least divergence from the clipped one (quantize/entropy)
#include "quantize/ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <charconv>
#include <cmath>

#include "base/fail.hpp"
#include "quantize/bin_sums.hpp"
#include "quantize/entropy.hpp"

namespace opfuse::quantization {
namespace {

constexpr const char* kMethodNames[] = {"minmax", "ema", "percentile", "mse", "entropy"};
constexpr int kSteps = 128;  // candidates of a search, of the whole range

struct Interval {
  double low, high;
};

Interval whole(const TensorStatistics& s) { return {std::min(s.low, 0.0), std::max(s.high, 0.0)}; }

Interval by_percentile(const TensorStatistics& s, double percentile) {
  const bool both = s.low < 0 && s.high > 0;
  const double outside = (100 - percentile) / 100 * static_cast<double>(s.elements) / (both ? 2 : 1);
  const Histogram& h = s.histogram;
  Interval kept = whole(s);
  if (s.high > 0) {
    double beyond = 0;
    for (size_t b = kBins; b > 0 && beyond + static_cast<double>(h.counts[b - 1]) <= outside; --b) {
      beyond += static_cast<double>(h.counts[b - 1]);
      kept.high = std::clamp(h.edge(b - 1), 0.0, s.high);
    }
  }
  if (s.low < 0) {
    double beyond = 0;
    for (size_t b = 0; b < kBins && beyond + static_cast<double>(h.counts[b]) <= outside; ++b) {
      beyond += static_cast<double>(h.counts[b]);
      kept.low = std::clamp(h.edge(b + 1), s.low, 0.0);
    }
  }
  return kept;
}

/// Each end by itself where zero points are free, both together where they are not.
Interval by_error(const TensorStatistics& s, DType dtype) {
  const BinSums sums(s);
  const Interval all = whole(s);
  const auto error = [&](const Interval& i) { return sums.error(i.low, i.high, (i.high - i.low) / 255); };
  Interval best = all;
  if (dtype == DType::i8) {
    const double most = std::max(-all.low, all.high);
    double least = HUGE_VAL;
    for (int k = kSteps; k > kSteps / 8; --k) {
      const double t = most * k / kSteps, e = sums.error(-t, t, t / 127);
      if (e < least) least = e, best = {-t, t};
    }
    return best;
  }
  double least = error(best);
  const auto try_this = [&](const Interval& candidate) {
    const double e = error(candidate);
    if (e < least) least = e, best = candidate;
  };
  for (int k = kSteps; k > kSteps / 8; --k) try_this({all.low * k / kSteps, all.high * k / kSteps});
  for (int round = 0; round < 2; ++round) {
    const Interval at = best;
    for (int k = kSteps; k > kSteps / 8; --k) try_this({at.low, all.high * k / kSteps});
    for (int k = kSteps; k > kSteps / 8; --k) try_this({all.low * k / kSteps, best.high});
  }
  return best;
}

Interval by_entropy(const TensorStatistics& s, DType dtype) {
  const double t = entropy_threshold(s, dtype == DType::u8 && s.low >= 0 ? 256 : 128);
  const Interval all = whole(s);
  return {std::max(all.low, -t), std::min(all.high, t)};
}

Interval interval_of(const TensorStatistics& s, const MethodChoice& choice, DType dtype) {
  if (choice.method == Method::ema) return {std::min(s.mean_low, 0.0), std::max(s.mean_high, 0.0)};
  if (choice.method == Method::minmax || s.histogram.empty() || s.low == s.high) return whole(s);
  if (choice.method == Method::percentile) return by_percentile(s, choice.percentile);
  return choice.method == Method::mse ? by_error(s, dtype) : by_entropy(s, dtype);
}

float scale_of(double range, int codes) {
  if (range <= 0) return 1;  // only zeros, which every scale has
  return std::max(static_cast<float>(range / codes), FLT_MIN);
}

}  // namespace

std::string MethodChoice::text() const {
  const char* name = kMethodNames[static_cast<size_t>(method)];
  return method == Method::percentile ? fmt::format("{}={:g}", name, percentile) : name;
}

MethodChoice parse_method(std::string_view text) {
  MethodChoice choice;
  const size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const auto* at = std::find(std::begin(kMethodNames), std::end(kMethodNames), name);
  bool good = at != std::end(kMethodNames);
  if (good) choice.method = static_cast<Method>(at - std::begin(kMethodNames));
  if (good && equals != std::string_view::npos) {
    const std::string_view number = text.substr(equals + 1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), choice.percentile);
    good = choice.method == Method::percentile && error == std::errc{} && end == number.data() + number.size() &&
           choice.percentile > 50 && choice.percentile <= 100;
  }
  if (!good)
    throw fail(E::bad_option, "'{}' is not a method of calibration", text)
        .hint("minmax, ema, percentile=99.99 (above 50, up to 100), mse, entropy");
  return choice;
}

bool needs_histograms(const MethodChoice& choice) {
  return choice.method != Method::minmax && choice.method != Method::ema;
}

double Codes::low() const { return (dtype == DType::u8 ? 0.0 - zero : -128.0 - zero) * static_cast<double>(scale); }
double Codes::high() const { return (dtype == DType::u8 ? 255.0 - zero : 127.0 - zero) * static_cast<double>(scale); }

Codes codes_of(const TensorStatistics& statistics, const MethodChoice& choice, DType dtype) {
  const Interval kept = interval_of(statistics, choice, dtype);
  if (dtype == DType::i8) return {DType::i8, scale_of(std::max(-kept.low, kept.high), 127), 0};
  const float scale = scale_of(kept.high - kept.low, 255);
  const double zero = std::nearbyint(-kept.low / static_cast<double>(scale));
  return {DType::u8, scale, static_cast<int32_t>(std::clamp(zero, 0.0, 255.0))};
}

CodesLoss loss_of(const TensorStatistics& statistics, const Codes& codes) {
  if (statistics.histogram.empty()) return {};
  const BinSums sums(statistics);
  const double error = sums.error(codes.low(), codes.high(), static_cast<double>(codes.scale));
  CodesLoss loss;
  loss.saturated = sums.beyond(codes.low(), codes.high()) / static_cast<double>(statistics.elements);
  loss.sqnr = error > 0 && sums.energy() > 0 ? 10 * std::log10(sums.energy() / error) : 0;
  return loss;
}

}  // namespace opfuse::quantization
