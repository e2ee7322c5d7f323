// Plain loops over independent lanes, which compilers make vectors of. Sums are taken in one order: the same samples
// give the same numbers at any number of threads.
#include "quantize/tensor_statistics.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace opfuse::quantization {
namespace {

constexpr int kLanes = 16;
constexpr double kMoving = 0.1;  // weight of the newest sample
constexpr uint32_t kExponent = 0x7f800000;

struct Range {
  float low, high;
  bool finite;
};

Range range_of(const float* x, int64_t count) {
  std::array<float, kLanes> low, high;
  std::array<uint32_t, kLanes> odd{};
  low.fill(x[0]), high.fill(x[0]);
  const auto take = [&](int lane, float v) {
    const auto l = static_cast<size_t>(lane);
    low[l] = v < low[l] ? v : low[l];
    high[l] = v > high[l] ? v : high[l];
    odd[l] |= (std::bit_cast<uint32_t>(v) & kExponent) == kExponent ? 1u : 0u;
  };
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) take(lane, x[i + lane]);
  for (; i < count; ++i) take(0, x[i]);
  const bool finite = std::all_of(odd.begin(), odd.end(), [](uint32_t o) { return o == 0; });
  return {*std::min_element(low.begin(), low.end()), *std::max_element(high.begin(), high.end()), finite};
}

struct Sums {
  double sum = 0, squares = 0;
};

Sums sums_of(const float* x, int64_t count) {
  std::array<double, kLanes> sums{}, squares{};
  const auto take = [&](size_t lane, float v) {
    const auto d = static_cast<double>(v);
    sums[lane] += d, squares[lane] += d * d;
  };
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) take(lane, x[i + static_cast<int64_t>(lane)]);
  for (; i < count; ++i) take(0, x[i]);
  Sums all;
  for (size_t lane = 0; lane < kLanes; ++lane) all.sum += sums[lane], all.squares += squares[lane];
  return all;
}

/// One number of each channel.
void take_row(TensorStatistics& s, const float* x, size_t channels) {
  for (size_t c = 0; c < channels; ++c) {
    const auto v = static_cast<double>(x[c]);
    s.channel_sums[c] += v, s.channel_squares[c] += v * v;
    s.channel_low[c] = std::min(s.channel_low[c], v), s.channel_high[c] = std::max(s.channel_high[c], v);
  }
}

void take_channels(TensorStatistics& s, const float* x, const std::vector<int64_t>& shape) {
  const auto axis = static_cast<size_t>(s.axis);
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < axis; ++d) outer *= shape[d];
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  const int64_t channels = shape[axis];
  const auto count = static_cast<size_t>(channels);
  s.channel_sums.resize(count), s.channel_squares.resize(count);
  s.channel_low.resize(count, HUGE_VAL), s.channel_high.resize(count, -HUGE_VAL);
  s.per_channel += outer * inner;
  if (inner == 1) {
    for (int64_t o = 0; o < outer; ++o) take_row(s, x + o * channels, count);
    return;
  }
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t c = 0; c < channels; ++c) {
      const float* row = x + (o * channels + c) * inner;
      const auto at = static_cast<size_t>(c);
      const Sums sums = sums_of(row, inner);
      const Range range = range_of(row, inner);
      s.channel_sums[at] += sums.sum, s.channel_squares[at] += sums.squares;
      s.channel_low[at] = std::min(s.channel_low[at], static_cast<double>(range.low));
      s.channel_high[at] = std::max(s.channel_high[at], static_cast<double>(range.high));
    }
}

int64_t elements_of(const ArrayView& array) {
  int64_t count = 1;
  for (int64_t size : array.shape) count *= size;
  return count;
}

}  // namespace

double TensorStatistics::channel_mean(size_t channel) const {
  return per_channel > 0 ? channel_sums[channel] / static_cast<double>(per_channel) : 0;
}

bool take_range(TensorStatistics& s, const ArrayView& array) {
  const int64_t count = elements_of(array);
  if (count == 0) return true;
  const auto* x = static_cast<const float*>(array.data);
  const Range range = range_of(x, count);
  if (!range.finite) return false;
  const double low = static_cast<double>(range.low), high = static_cast<double>(range.high);
  const bool first = s.elements == 0;
  s.low = first ? low : std::min(s.low, low);
  s.high = first ? high : std::max(s.high, high);
  s.mean_low = first ? low : s.mean_low + kMoving * (low - s.mean_low);
  s.mean_high = first ? high : s.mean_high + kMoving * (high - s.mean_high);
  s.elements += count;
  ++s.samples;
  if (s.axis >= 0 && static_cast<size_t>(s.axis) < array.shape.size()) take_channels(s, x, array.shape);
  return true;
}

void take_bins(TensorStatistics& s, const ArrayView& array) {
  constexpr int64_t kBlock = 1024;
  const int64_t count = elements_of(array);
  const auto* x = static_cast<const float*>(array.data);
  s.bins.resize(kBins);
  const double width = s.high - s.low;
  const auto per_unit = static_cast<float>(width > 0 ? kBins / width : 0);
  const auto low = static_cast<float>(s.low);
  // Equal neighbours would wait for each other's store: two counters take turns.
  std::vector<int64_t> even(kBins), odd(kBins);
  std::array<int32_t, kBlock> bin;
  int64_t zeros = 0;
  for (int64_t from = 0; from < count; from += kBlock) {
    const int64_t n = std::min(kBlock, count - from);
    int32_t block_zeros = 0;
    for (int64_t i = 0; i < n; ++i) {
      const float v = x[from + i];
      const auto at = static_cast<int32_t>((v - low) * per_unit);
      bin[static_cast<size_t>(i)] = at < 0 ? 0 : at >= kBins ? kBins - 1 : at;
      block_zeros += v == 0.0f ? 1 : 0;
    }
    zeros += block_zeros;
    int64_t i = 0;
    for (; i + 2 <= n; i += 2) {
      ++even[static_cast<size_t>(bin[static_cast<size_t>(i)])];
      ++odd[static_cast<size_t>(bin[static_cast<size_t>(i + 1)])];
    }
    if (i < n) ++even[static_cast<size_t>(bin[static_cast<size_t>(i)])];
  }
  s.zeros += zeros;
  for (size_t b = 0; b < kBins; ++b) s.bins[b] += even[b] + odd[b];
}

}  // namespace opfuse::quantization
