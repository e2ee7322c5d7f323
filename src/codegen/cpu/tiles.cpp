// Constant extents are cut when generating. With a symbolic extent the pixels whose windows lie inside
// form the middle, found at run time; those before it go one by one, and so does the ragged rest where windows may
// leave the data. Elsewhere the rest goes in tiles of 8, 4, 2 and 1: one by one, two rows behind nine tiles of 14 would
// take a fifteenth of the time.
#include "codegen/cpu/tiles.hpp"

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

/// The largest power of two below the tile's width, at least 1.
int64_t widest_below(int64_t width) {
  int64_t w = 1;
  while (2 * w < width) w *= 2;
  return w;
}

std::vector<TileRun> cut_constant(Kernel& k, int64_t pixels, int64_t width, const SlidingDim* s, int64_t taps) {
  std::vector<TileRun> runs;
  int64_t number = 0;
  for (int64_t at = 0; at < pixels; at += width, ++number) {
    const int64_t w = std::min(width, pixels - at);
    const auto valid = s ? validity(*s, at, w, taps) : std::vector<uint64_t>{};
    if (!runs.empty() && runs.back().width == w && runs.back().valid == valid) {
      ++runs.back().count;
      runs.back().end = k.i64(at + w);
      continue;
    }
    runs.push_back({k.i64(at), k.i64(at + w), w, valid, false, number, 1});
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

std::vector<TileRun> cut_tiles(Kernel& k, const Dim& pixels, int64_t width, const SlidingDim* s, int64_t taps) {
  const auto count = pixels.constant();
  if (count && (!s || s->extent.is_constant())) return cut_constant(k, *count, width, s, taps);
  Value* total = k.dim(pixels);
  Value* begin = k.i64(0);
  Value* end = total;
  if (s) {
    begin = k.min(total, k.i64(s->offset < 0 ? (-s->offset + s->stride - 1) / s->stride : 0));
    // last pixel whose last tap is inside
    Value* room = k.sub(k.dim(s->extent), k.i64(s->offset + (taps - 1) * s->dilation + 1));
    end = k.max(begin, k.min(total, k.add(k.floor_div(room, s->stride), k.i64(1))));
  }
  Value* tiles = k.b.CreateSDiv(k.sub(end, begin), k.i64(width));
  Value* middle = k.add(begin, k.mul(tiles, k.i64(width)));
  std::vector<TileRun> runs;
  if (s) runs.push_back({k.i64(0), begin, 1, {}, true, 0, 0});
  runs.push_back({begin, middle, width, {}, false, 0, 0});
  for (int64_t w = s ? 1 : widest_below(width); w >= 1; w /= 2) {
    Value* rest = w == 1 ? total : k.add(middle, k.mul(k.div(k.sub(total, middle), k.i64(w)), k.i64(w)));
    runs.push_back({middle, rest, w, {}, s != nullptr, 0, 0});
    middle = rest;
  }
  return runs;
}

int64_t tile_count(const std::vector<TileRun>& runs) {
  return runs.empty() ? 0 : runs.back().first + runs.back().count;
}

}  // namespace opfuse::cpu
