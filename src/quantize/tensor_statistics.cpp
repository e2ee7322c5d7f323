// Plain loops over independent lanes, which compilers make vectors of. Sums are taken in one order: the same samples
// give the same numbers at any number of threads.
#include "quantize/tensor_statistics.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace opfuse::quantization {
namespace {

constexpr size_t kLanes = 16;
constexpr double kMoving = 0.1;  // weight of the newest sample
constexpr uint32_t kExponent = 0x7f800000;

/// What one look at numbers that lie together gives.
struct Row {
  float low, high;
  bool finite;
  double sum = 0, squares = 0;
};

template <bool sums>
[[gnu::always_inline]] inline Row row_body(const float* x, int64_t count) {
  std::array<float, kLanes> low, high;
  std::array<uint32_t, kLanes> odd{};
  std::array<double, kLanes> sum{}, squares{};
  low.fill(x[0]), high.fill(x[0]);
  const auto take = [&](size_t l, float v) {
    low[l] = v < low[l] ? v : low[l];
    high[l] = v > high[l] ? v : high[l];
    odd[l] |= (std::bit_cast<uint32_t>(v) & kExponent) == kExponent ? 1u : 0u;
    if (sums) sum[l] += static_cast<double>(v), squares[l] += static_cast<double>(v) * static_cast<double>(v);
  };
  int64_t i = 0;
  for (; i + int64_t{kLanes} <= count; i += kLanes)
    for (size_t l = 0; l < kLanes; ++l) take(l, x[i + static_cast<int64_t>(l)]);
  for (; i < count; ++i) take(0, x[i]);
  Row row{*std::min_element(low.begin(), low.end()), *std::max_element(high.begin(), high.end()),
          std::all_of(odd.begin(), odd.end(), [](uint32_t o) { return o == 0; })};
  for (size_t l = 0; l < kLanes; ++l) row.sum += sum[l], row.squares += squares[l];
  return row;
}

// No FMA: every machine takes the same sums.
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2"))) Row row_avx2(const float* x, int64_t count, bool sums) {
  return sums ? row_body<true>(x, count) : row_body<false>(x, count);
}
bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}
#else
Row row_avx2(const float* x, int64_t count, bool sums) {
  return sums ? row_body<true>(x, count) : row_body<false>(x, count);
}
constexpr bool has_avx2() { return true; }
#endif

Row row_of(const float* x, int64_t count, bool sums) {
  if (has_avx2()) return row_avx2(x, count, sums);
  return sums ? row_body<true>(x, count) : row_body<false>(x, count);
}

/// One number of each channel.
void take_row(TensorStatistics& s, const float* x, size_t channels) {
  for (size_t c = 0; c < channels; ++c) {
    const auto v = static_cast<double>(x[c]);
    s.channel_sums[c] += v, s.channel_squares[c] += v * v;
    s.channel_low[c] = std::min(s.channel_low[c], v), s.channel_high[c] = std::max(s.channel_high[c], v);
  }
}

struct Extents {
  int64_t outer = 1, channels = 1, inner = 1;
};

Extents extents_of(const std::vector<int64_t>& shape, size_t axis) {
  Extents e{.channels = shape[axis]};
  for (size_t d = 0; d < axis; ++d) e.outer *= shape[d];
  for (size_t d = axis + 1; d < shape.size(); ++d) e.inner *= shape[d];
  return e;
}

/// The whole from rows of channels, which are looked at once.
Row whole_of(const std::vector<Row>& rows) {
  Row all{rows[0].low, rows[0].high, true};
  for (const Row& row : rows) {
    all.low = std::min(all.low, row.low), all.high = std::max(all.high, row.high);
    all.finite = all.finite && row.finite;
  }
  return all;
}

std::vector<Row> rows_of(const float* x, const Extents& e) {
  std::vector<Row> rows;
  for (int64_t r = 0; r < e.outer * e.channels; ++r) rows.push_back(row_of(x + r * e.inner, e.inner, true));
  return rows;
}

void take_channels(TensorStatistics& s, const float* x, const Extents& e, const std::vector<Row>& rows) {
  const auto count = static_cast<size_t>(e.channels);
  s.channel_sums.resize(count), s.channel_squares.resize(count);
  s.channel_low.resize(count, HUGE_VAL), s.channel_high.resize(count, -HUGE_VAL);
  s.per_channel += e.outer * e.inner;
  for (int64_t o = 0; rows.empty() && o < e.outer; ++o) take_row(s, x + o * e.channels, count);
  for (size_t r = 0; r < rows.size(); ++r) {
    const size_t c = r % count;
    s.channel_sums[c] += rows[r].sum, s.channel_squares[c] += rows[r].squares;
    s.channel_low[c] = std::min(s.channel_low[c], static_cast<double>(rows[r].low));
    s.channel_high[c] = std::max(s.channel_high[c], static_cast<double>(rows[r].high));
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
  const bool channels = s.axis >= 0 && static_cast<size_t>(s.axis) < array.shape.size();
  const Extents extents = channels ? extents_of(array.shape, static_cast<size_t>(s.axis)) : Extents{};
  const std::vector<Row> rows = channels && extents.inner > 1 ? rows_of(x, extents) : std::vector<Row>{};
  const Row range = rows.empty() ? row_of(x, count, false) : whole_of(rows);
  if (!range.finite) return false;
  const double low = static_cast<double>(range.low), high = static_cast<double>(range.high);
  const bool first = s.elements == 0;
  s.low = first ? low : std::min(s.low, low);
  s.high = first ? high : std::max(s.high, high);
  s.mean_low = first ? low : s.mean_low + kMoving * (low - s.mean_low);
  s.mean_high = first ? high : s.mean_high + kMoving * (high - s.mean_high);
  s.elements += count;
  ++s.samples;
  if (channels) take_channels(s, x, extents, rows);
  return true;
}

void take_histogram(TensorStatistics& s, const ArrayView& array) {
  const int64_t count = elements_of(array);
  if (count == 0) return;
  s.histogram.cover(s.low, s.high);
  s.zeros += s.histogram.add(static_cast<const float*>(array.data), count);
}

}  // namespace opfuse::quantization
