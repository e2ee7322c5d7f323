// Sums are taken in one order: the same samples give the same numbers at any number of threads.
#include "quantize/tensor_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "base/product_of.hpp"
#include "quantize/lane_ranges.hpp"

namespace opfuse::quantization {
namespace {

constexpr double kMoving = 0.1;  // weight of the newest sample

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

void take_channels(TensorStatistics& s, const float* x, const Extents& e, const std::vector<NumberRange>& rows) {
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

/// Ranges and counts of one array, piece by piece: what was looked at is counted while it lies in L1.
class Taker {
 public:
  Taker(TensorStatistics& s, bool histogram, bool sums) : s_(s), sums_(sums), first_(s.elements == 0) {
    if (histogram) counting_.emplace(s.histogram);
  }

  /// Rows of equal length, one behind the other.
  bool take_rows(const float* x, int64_t length, std::span<NumberRange> rows) {
    const auto together = static_cast<size_t>(std::max<int64_t>(1, kPiece / length));
    for (size_t r = 0; r < rows.size(); r += together) {
      const size_t end = std::min(rows.size(), r + together);
      const float* from = x + static_cast<int64_t>(r) * length;
      if (length > kPiece) {
        if (!take_long(from, length, rows[r])) return false;
        continue;
      }
      NumberRange piece;
      for (size_t i = r; i < end; ++i) {
        const NumberRange row = lane_ranges(x + static_cast<int64_t>(i) * length, length, sums_).all();
        piece.join(row), rows[i].join(row);
      }
      if (!take_piece(from, static_cast<int64_t>(end - r) * length, piece)) return false;
    }
    return true;
  }

  /// Rows whose numbers take turns; kLanes is a multiple of how many they are.
  bool take_turns(const float* x, int64_t count, std::span<NumberRange> rows) {
    for (int64_t at = 0; at < count; at += kPiece) {
      const int64_t n = std::min(kPiece, count - at);
      const LaneRanges lanes = lane_ranges(x + at, n, sums_);
      for (size_t l = 0; l < kLanes; ++l) rows[l % rows.size()].join(lanes.lane(l));
      if (!take_piece(x + at, n, lanes.all())) return false;
    }
    return true;
  }

  /// All of the array was taken.
  void finish(int64_t elements) {
    const double low = static_cast<double>(low_), high = static_cast<double>(high_);
    s_.low = first_ ? low : std::min(s_.low, low);
    s_.high = first_ ? high : std::max(s_.high, high);
    s_.mean_low = first_ ? low : s_.mean_low + kMoving * (low - s_.mean_low);
    s_.mean_high = first_ ? high : s_.mean_high + kMoving * (high - s_.mean_high);
    s_.elements += elements;
    ++s_.samples;
  }

 private:
  static constexpr int64_t kPiece = 4096;  // a multiple of kLanes

  bool take_long(const float* x, int64_t length, NumberRange& row) {
    for (int64_t at = 0; at < length; at += kPiece) {
      const int64_t n = std::min(kPiece, length - at);
      const NumberRange piece = lane_ranges(x + at, n, sums_).all();
      row.join(piece);
      if (!take_piece(x + at, n, piece)) return false;
    }
    return true;
  }

  bool take_piece(const float* x, int64_t count, const NumberRange& piece) {
    if (!piece.finite) return false;
    low_ = std::min(low_, piece.low), high_ = std::max(high_, piece.high);
    if (!counting_) return true;
    const double low = static_cast<double>(low_), high = static_cast<double>(high_);
    counting_->cover(first_ ? low : std::min(low, s_.low), first_ ? high : std::max(high, s_.high));
    s_.zeros += counting_->add(x, count);
    return true;
  }

  TensorStatistics& s_;
  const bool sums_, first_;
  float low_ = HUGE_VALF, high_ = -HUGE_VALF;
  std::optional<Histogram::Counting> counting_;
};

/// An array in blocks: [outer][blocks][inner][block].
struct Blocks {
  Extents extents;
  int64_t block, count;

  explicit Blocks(const ArrayView& array, const ChannelBlocks& lies)
      : extents(extents_of(array.shape, lies.axis)), block(array.shape.back()), count(extents.channels) {
    extents.inner /= block;
    extents.channels = lies.channels;
  }

  int64_t elements() const { return extents.outer * extents.channels * extents.inner; }
  int64_t channels_of(int64_t b) const { return std::min(block, extents.channels - b * block); }

  /// The channels of a block one behind the other.
  void unpack(const float* x, int64_t b, float* to) const {
    for (int64_t c = 0; c < channels_of(b); ++c)
      for (int64_t i = 0; i < extents.inner; ++i) to[c * extents.inner + i] = x[i * block + c];
  }
};

std::vector<float> unpacked(const float* x, const Blocks& a) {
  std::vector<float> dense(static_cast<size_t>(a.elements()));
  float* to = dense.data();
  for (int64_t at = 0; at < a.extents.outer * a.count; ++at, x += a.extents.inner * a.block) {
    a.unpack(x, at % a.count, to);
    to += a.channels_of(at % a.count) * a.extents.inner;
  }
  return dense;
}

/// As they lie; but the last block where some of its lanes are no channels.
bool take_in_blocks(TensorStatistics& s, const float* x, const Blocks& a, bool histogram) {
  std::vector<NumberRange> rows(static_cast<size_t>(a.extents.outer * a.extents.channels));
  std::vector<float> dense;
  Taker taker(s, histogram, s.axis >= 0);
  size_t row = 0;
  for (int64_t at = 0; at < a.extents.outer * a.count; ++at, x += a.extents.inner * a.block) {
    const int64_t channels = a.channels_of(at % a.count);
    const std::span<NumberRange> own(rows.data() + row, static_cast<size_t>(channels));
    row += own.size();
    if (channels == a.block) {
      if (!taker.take_turns(x, a.extents.inner * a.block, own)) return false;
      continue;
    }
    dense.resize(static_cast<size_t>(channels * a.extents.inner));
    a.unpack(x, at % a.count, dense.data());
    if (!taker.take_rows(dense.data(), a.extents.inner, own)) return false;
  }
  taker.finish(a.elements());
  if (s.axis >= 0) take_channels(s, x, a.extents, rows);
  return true;
}

bool take_dense(TensorStatistics& s, const float* x, const std::vector<int64_t>& shape, bool histogram) {
  const bool channels = s.axis >= 0 && static_cast<size_t>(s.axis) < shape.size();
  const Extents extents = channels ? extents_of(shape, static_cast<size_t>(s.axis)) : Extents{};
  const bool by_rows = channels && extents.inner > 1;
  const int64_t count = product_of(shape);
  std::vector<NumberRange> rows(static_cast<size_t>(by_rows ? extents.outer * extents.channels : 1));
  Taker taker(s, histogram, by_rows);
  if (!taker.take_rows(x, count / static_cast<int64_t>(rows.size()), rows)) return false;
  taker.finish(count);
  if (channels) take_channels(s, x, extents, by_rows ? rows : std::vector<NumberRange>{});
  return true;
}

}  // namespace

double TensorStatistics::channel_mean(size_t channel) const {
  return per_channel > 0 ? channel_sums[channel] / static_cast<double>(per_channel) : 0;
}

void TensorStatistics::forget_channels() {
  axis = -1, per_channel = 0;
  channel_sums.clear(), channel_squares.clear(), channel_low.clear(), channel_high.clear();
}

bool take_array(TensorStatistics& s, const ArrayView& array, bool histogram,
                const std::optional<ChannelBlocks>& blocks) {
  if (product_of(array.shape) == 0) return true;
  const auto* x = static_cast<const float*>(array.data);
  if (!blocks) return take_dense(s, x, array.shape, histogram);
  const Blocks lies(array, *blocks);
  const bool along = s.axis < 0 || static_cast<size_t>(s.axis) == blocks->axis;
  if (along && static_cast<int64_t>(kLanes) % lies.block == 0) return take_in_blocks(s, x, lies, histogram);
  const std::vector<float> dense = unpacked(x, lies);
  std::vector<int64_t> shape(array.shape.begin(), array.shape.end() - 1);
  shape[blocks->axis] = blocks->channels;
  return take_dense(s, dense.data(), shape, histogram);
}

}  // namespace opfuse::quantization
