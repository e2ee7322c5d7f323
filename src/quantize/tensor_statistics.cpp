// Plain loops over independent lanes, which compilers make vectors of. Sums are taken in one order: the same samples
// give the same numbers at any number of threads.
#include "quantize/tensor_statistics.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>

#include "quantize/by_vectors.hpp"

namespace opfuse::quantization {
namespace {

constexpr size_t kLanes = 16;
constexpr double kMoving = 0.1;  // weight of the newest sample
constexpr uint32_t kExponent = 0x7f800000;

/// What one look at numbers that lie together gives.
struct Row {
  float low = HUGE_VALF, high = -HUGE_VALF;
  bool finite = true;
  double sum = 0, squares = 0;

  void join(const Row& other) {
    low = std::min(low, other.low), high = std::max(high, other.high);
    finite = finite && other.finite;
    sum += other.sum, squares += other.squares;
  }
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

Row row_base(const float* x, int64_t count, bool sums) {
  return sums ? row_body<true>(x, count) : row_body<false>(x, count);
}

// A square of an f32 is exact in f64, so every machine takes the same sums, with FMA or without.
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2"))) Row row_avx2(const float* x, int64_t count, bool sums) {
  return sums ? row_body<true>(x, count) : row_body<false>(x, count);
}
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512"))) Row row_avx512(const float* x,
                                                                                                     int64_t count,
                                                                                                     bool sums) {
  return sums ? row_body<true>(x, count) : row_body<false>(x, count);
}
#endif

Row row_of(const float* x, int64_t count, bool sums) {
#if defined(__x86_64__) && defined(__GNUC__)
  static const auto best = by_vectors(row_base, row_avx2, row_avx512);
  return best(x, count, sums);
#else
  return row_base(x, count, sums);
#endif
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

/// Ranges and counts of one array, piece by piece: what was looked at is counted while it lies in L1.
class Taker {
 public:
  Taker(TensorStatistics& s, bool histogram) : s_(s), first_(s.elements == 0) {
    if (histogram) counting_.emplace(s.histogram);
  }

  /// `rows`: as many as the array has, of equal length.
  bool take(const float* x, int64_t count, bool sums, std::vector<Row>& rows) {
    const int64_t length = count / static_cast<int64_t>(rows.size());
    const auto together = static_cast<size_t>(std::max<int64_t>(1, kPiece / length));
    for (size_t r = 0; r < rows.size(); r += together) {
      const size_t end = std::min(rows.size(), r + together);
      const float* from = x + static_cast<int64_t>(r) * length;
      if (length > kPiece) {
        if (!take_long(from, length, sums, rows[r])) return false;
        continue;
      }
      Row piece;
      for (size_t i = r; i < end; ++i) {
        rows[i] = row_of(x + static_cast<int64_t>(i) * length, length, sums);
        piece.join(rows[i]);
      }
      if (!take_piece(from, static_cast<int64_t>(end - r) * length, piece)) return false;
    }
    finish(count);
    return true;
  }

 private:
  static constexpr int64_t kPiece = 4096;

  bool take_long(const float* x, int64_t length, bool sums, Row& row) {
    for (int64_t at = 0; at < length; at += kPiece) {
      const int64_t n = std::min(kPiece, length - at);
      const Row piece = row_of(x + at, n, sums);
      row.join(piece);
      if (!take_piece(x + at, n, piece)) return false;
    }
    return true;
  }

  bool take_piece(const float* x, int64_t count, const Row& piece) {
    if (!piece.finite) return false;
    low_ = std::min(low_, piece.low), high_ = std::max(high_, piece.high);
    if (!counting_) return true;
    const double low = static_cast<double>(low_), high = static_cast<double>(high_);
    counting_->cover(first_ ? low : std::min(low, s_.low), first_ ? high : std::max(high, s_.high));
    s_.zeros += counting_->add(x, count);
    return true;
  }

  void finish(int64_t count) {
    const double low = static_cast<double>(low_), high = static_cast<double>(high_);
    s_.low = first_ ? low : std::min(s_.low, low);
    s_.high = first_ ? high : std::max(s_.high, high);
    s_.mean_low = first_ ? low : s_.mean_low + kMoving * (low - s_.mean_low);
    s_.mean_high = first_ ? high : s_.mean_high + kMoving * (high - s_.mean_high);
    s_.elements += count;
  }

  TensorStatistics& s_;
  const bool first_;
  float low_ = HUGE_VALF, high_ = -HUGE_VALF;
  std::optional<Histogram::Counting> counting_;
};

}  // namespace

double TensorStatistics::channel_mean(size_t channel) const {
  return per_channel > 0 ? channel_sums[channel] / static_cast<double>(per_channel) : 0;
}

bool take_array(TensorStatistics& s, const ArrayView& array, bool histogram) {
  const int64_t count = elements_of(array);
  if (count == 0) return true;
  const auto* x = static_cast<const float*>(array.data);
  const bool channels = s.axis >= 0 && static_cast<size_t>(s.axis) < array.shape.size();
  const Extents extents = channels ? extents_of(array.shape, static_cast<size_t>(s.axis)) : Extents{};
  const bool by_rows = channels && extents.inner > 1;
  std::vector<Row> rows(static_cast<size_t>(by_rows ? extents.outer * extents.channels : 1));
  Taker taker(s, histogram);
  if (!taker.take(x, count, by_rows, rows)) return false;
  ++s.samples;
  if (channels) take_channels(s, x, extents, by_rows ? rows : std::vector<Row>{});
  return true;
}

}  // namespace opfuse::quantization
