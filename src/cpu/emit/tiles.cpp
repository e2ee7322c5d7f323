// Constant extents are cut when generating. With a symbolic extent the pixels whose windows lie inside
// form the middle, found at run time; those before it go one by one, and so does the ragged rest where windows may
// leave the data. Elsewhere the rest goes in tiles by a table (open_rows.hpp).
#include "cpu/emit/tiles.hpp"

#include "base/fail.hpp"
#include "cpu/open_rows.hpp"

namespace opfuse::cpu {
namespace {

bool inside_at(const SlidingDim& s, int64_t pixel, int64_t tap) {
  const int64_t x = pixel * s.stride + tap * s.dilation + s.offset;
  return x >= 0 && x < *s.extent.constant();
}

std::vector<uint64_t> validity(const SlidingDim& s, int64_t first, int64_t width, int64_t taps) {
  std::vector<uint64_t> valid(static_cast<size_t>(taps), 0);
  bool all = true;
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t t = 0; t < width; ++t) {
      const bool in = inside_at(s, first + t, tap);
      valid[static_cast<size_t>(tap)] |= uint64_t{in} << t;
      all &= in;
    }
  return all ? std::vector<uint64_t>{} : valid;
}

/// Behind the last pixel whose windows lie inside the data; of a pixel that is inside itself.
int64_t inside_end(const SlidingDim* s, int64_t pixels, int64_t taps) {
  if (!s) return pixels;
  return std::min(pixels, (*s->extent.constant() - 1 - (taps - 1) * s->dilation - s->offset) / s->stride + 1);
}

/// Tiles inside the data are counted, not visited: there may be billions.
std::vector<TileRun> cut_constant(Kernel& k, int64_t pixels, int64_t width, const SlidingDim* s, int64_t taps) {
  std::vector<TileRun> runs;
  int64_t number = 0;
  for (int64_t at = 0; at < pixels;) {
    const int64_t w = std::min(width, pixels - at);
    const auto valid = s ? validity(*s, at, w, taps) : std::vector<uint64_t>{};
    const bool inside = valid.empty() && w == width;
    const int64_t count = inside ? std::max<int64_t>(1, (inside_end(s, pixels, taps) - at) / width) : 1;
    const int64_t end = at + count * w;
    if (!runs.empty() && runs.back().width == w && runs.back().valid == valid) {
      runs.back().count += count;
      runs.back().end = k.i64(end);
    } else {
      runs.push_back({k.i64(at), k.i64(end), w, valid, false, number, count});
    }
    at = end;
    number += count;
  }
  return runs;
}

void append_run(Kernel& k, std::vector<TileRun>& runs, Value* begin, Value* end, int64_t width, bool clip = false) {
  Value* before = runs.empty() ? k.i64(0) : open_tile_count(k, runs);
  runs.push_back({begin, end, width, {}, clip, 0, 0, before});
}

/// How many of up to `span` rows go in tiles of the i-th width: two bits for each number of rows.
uint64_t counts_of(size_t i, int64_t span, int64_t width, int64_t vectors, const TargetInfo& target) {
  uint64_t counts = 0;
  for (int64_t rows = 0; rows < span; ++rows) {
    const int64_t count =
        cut_rows(rows, width, vectors, target.multiply_adds_in_flight(), target.kernels.open_tile)[i].count;
    OPFUSE_CHECK(count <= 3, "{} tiles for {} rows", count, rows);
    counts |= static_cast<uint64_t>(count) << (2 * rows);
  }
  return counts;
}

/// The last rows, up to two of the widest tiles' where the table holds as many, are cut by the table.
std::vector<TileRun> cut_open(Kernel& k, Value* first, Value* total, int64_t width, int64_t vectors) {
  const bool two = 4 * width <= 64;
  const int64_t span = (two ? 2 : 1) * width;
  OPFUSE_CHECK(2 * span <= 64, "tiles of {} rows", width);
  Value* full = k.div(total, k.i64(width));
  if (two) full = k.max(k.i64(0), k.sub(full, k.i64(1)));
  Value* rest = k.sub(total, k.mul(full, k.i64(width)));
  Value* shift = k.mul(rest, k.i64(2));
  std::vector<TileRun> runs;
  const std::vector<int64_t> widths = row_widths(width);
  Value* at = first;
  for (size_t i = 0; i < widths.size(); ++i) {
    const auto table = static_cast<int64_t>(counts_of(i, span, width, vectors, k.target));
    Value* count = k.b.CreateAnd(k.b.CreateLShr(k.i64(table), shift), k.i64(3));
    if (i == 0) count = k.add(count, full);
    if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(count); known && known->isZero() && !runs.empty())
      continue;
    Value* end = k.add(at, k.mul(count, k.i64(widths[i])));
    append_run(k, runs, at, end, widths[i]);
    at = end;
  }
  return runs;
}

}  // namespace

TapRange clip_taps(Kernel& k, const SlidingDim& s, const Dim& taps, Value* at) {
  // 0 <= at*stride + offset + tap*dilation < extent
  Value* start = k.add(k.mul(at, k.i64(s.stride)), k.i64(s.offset));
  Value* below = k.floor_div(k.sub(k.i64(s.dilation - 1), start), s.dilation);
  Value* above = k.floor_div(k.add(k.sub(k.dim(s.extent), start), k.i64(s.dilation - 1)), s.dilation);
  return {k.max(k.i64(0), below), k.min(k.dim(taps), above)};
}

bool may_leave(const Stage& stage, const SlidingDim& s) {
  const Dim outputs = s.axis < 0 ? Dim(1) : axis_extent(stage, s.axis);
  const Dim taps = s.tap < 0 ? Dim(1) : axis_extent(stage, s.tap);
  if (s.axis >= 0 && s.tap < 0 && s.stride == 1 && s.offset == 0 && outputs == s.extent) return false;
  if (!outputs.is_constant() || !taps.is_constant() || !s.extent.is_constant()) return true;
  return s.offset < 0 ||
         (outputs.value() - 1) * s.stride + (taps.value() - 1) * s.dilation + s.offset >= s.extent.value();
}

Value* inside_without_taps(Kernel& k, const Stage& stage, const std::vector<SlidingDim>& sliding, const Env& env,
                           int pixel) {
  Value* inside = k.b.getTrue();
  for (const SlidingDim& s : sliding) {
    if (s.tap >= 0 || (s.axis >= 0 && s.axis == pixel) || !may_leave(stage, s)) continue;
    Value* at = k.i64(0);
    if (s.axis >= 0) {
      const AxisValue& axis = env.axes[static_cast<size_t>(s.axis)];
      at = k.add(axis.base, k.i64(axis.plus));
    }
    Value* x = k.add(k.mul(at, k.i64(s.stride)), k.i64(s.offset));
    inside = k.b.CreateAnd(inside, k.b.CreateICmpULT(x, k.dim(s.extent)));
  }
  return inside;
}

std::vector<TileRun> cut_tiles(Kernel& k, const Dim& pixels, int64_t width, const SlidingDim* s, int64_t taps,
                               int64_t vectors) {
  const auto count = pixels.constant();
  if (count && (!s || s->extent.is_constant())) return cut_constant(k, *count, width, s, taps);
  Value* total = k.dim(pixels);
  if (!s) return cut_open(k, k.i64(0), total, width, vectors);
  Value* begin = k.min(total, k.i64(s->offset < 0 ? (-s->offset + s->stride - 1) / s->stride : 0));
  // last pixel whose last tap is inside
  Value* room = k.sub(k.dim(s->extent), k.i64(s->offset + (taps - 1) * s->dilation + 1));
  Value* end = k.max(begin, k.min(total, k.add(k.floor_div(room, s->stride), k.i64(1))));
  Value* middle = k.add(begin, k.mul(k.b.CreateSDiv(k.sub(end, begin), k.i64(width)), k.i64(width)));
  std::vector<TileRun> runs;
  append_run(k, runs, k.i64(0), begin, 1, true);
  append_run(k, runs, begin, middle, width);
  append_run(k, runs, middle, total, 1, true);
  return runs;
}

std::vector<TileRun> cut_band(Kernel& k, Value* begin, Value* count, int64_t width, int64_t vectors) {
  return cut_open(k, begin, count, width, vectors);
}

Value* open_tile_count(Kernel& k, const std::vector<TileRun>& runs) {
  const TileRun& last = runs.back();
  return k.add(last.before, k.div(k.sub(last.end, last.begin), k.i64(last.width)));
}

int64_t tile_count(const std::vector<TileRun>& runs) {
  return runs.empty() ? 0 : runs.back().first + runs.back().count;
}

}  // namespace opfuse::cpu
