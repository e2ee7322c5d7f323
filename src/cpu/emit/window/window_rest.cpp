// The epilogues of a window's rows behind the taps of all of them:
//
//   for some rows at a time:
//     for rows, tiles: taps; the sums come to rest
//     for rows, groups of pixels: epilogues of the group, which take turns; data of the rows to come are asked for
//
// A function behind every tile is a few chains of dependent operations between two runs of multiply-adds: too few to
// hide their latency, and no core looks far enough ahead to start the next tile's taps beside them. A row has enough.
#include <algorithm>

#include "base/integers.hpp"
#include "cpu/emit/prefetch.hpp"
#include "cpu/emit/take_turns.hpp"
#include "cpu/emit/window/window.hpp"

namespace opfuse::cpu {
namespace {

// Measured on 3x3 and 5x5 taps and SiLU, maps of 7 to 28 pixels (AMD Zen 5): 112 vectors are up to 5 % faster than 64,
// and 224 no faster; groups of 7 to 16 differ by less than 3 %, 28 spill.
constexpr int64_t kResting = 112;      ///< vectors, of a row at least
constexpr int64_t kMostResting = 256;  ///< rows with more end every tile with its epilogue: the sums must stay in L1
constexpr int64_t kMostInTurns = 16;

}  // namespace

void WindowEmitter::find_rest(int64_t width) {
  if (!has_long_epilogue(s_.stage) || s_.clips()) return;
  const Dim extent = axis_extent(s_.stage, view_.pixel);
  const int64_t pixels = extent.constant().value_or(kMostResting + 1);
  const bool one_tile = rows() == Dim(1) && pixels <= width;
  if (pixels > kMostResting || one_tile) return;
  rest_group_ = ceil_of(pixels, ceil_of(pixels, kMostInTurns));
  rest_rows_ = std::clamp<int64_t>(kResting / pixels, 1, rows().constant().value_or(kResting));
  rest_ = k_.variable(llvm::ArrayType::get(acc_[0]->getAllocatedType(), static_cast<uint64_t>(rest_rows_ * pixels)));
  fetch_rows_ = row_axis_ >= 0 && pixel_dim_ && pixel_dim_->tap >= 0 && data_pass_l1();
}

/// One channel vector of them.
bool WindowEmitter::data_pass_l1() const {
  int64_t bytes = lanes_ * static_cast<int64_t>(byte_size(s_.reads[static_cast<size_t>(view_.data)].dtype));
  for (const SlidingDim& d : view_.sliding) bytes *= d.extent.constant().value_or(k_.target.l1_bytes);
  return bytes > k_.target.l1_bytes / 2;
}

/// Of the sums of a row that rests as number `row`.
Value* WindowEmitter::rest_at(Value* row, Value* pixel) {
  const int64_t pixels = axis_extent(s_.stage, view_.pixel).value();
  return k_.element(rest_, DType::f32, k_.mul(k_.add(k_.mul(row, k_.i64(pixels)), pixel), k_.i64(lanes_)));
}

void WindowEmitter::rest_tile(int64_t width, Value* to) {
  const llvm::Align align(static_cast<uint64_t>(lanes_) * 4);
  for (int64_t p = 0; p < width; ++p)
    k_.b.CreateAlignedStore(combined(p, width), k_.element(to, DType::f32, k_.i64(p * lanes_)), align, true);
}

void WindowEmitter::emit_resting_rows(const Env& env, Value* r0, Value* r1) {
  const auto each = [&](Value* first, Value* end, const std::function<void(const Env&, Value*)>& body) {
    if (row_axis_ < 0) return body(env, k_.i64(0));
    k_.loop(first, end, 1, [&](Value* row) {
      Env at = env;
      at.axes[static_cast<size_t>(row_axis_)] = {row, false, 1};
      body(at, k_.sub(row, first));
    });
  };
  const int64_t pixels = axis_extent(s_.stage, view_.pixel).value();
  k_.loop(row_axis_ < 0 ? k_.i64(0) : r0, row_axis_ < 0 ? k_.i64(1) : r1, rest_rows_, [&](Value* first) {
    Value* end = row_axis_ < 0 ? nullptr : k_.min(k_.add(first, k_.i64(rest_rows_)), r1);
    each(first, end, [&](const Env& at, Value* row) { emit_row(at, row); });
    each(first, end, [&](const Env& at, Value* row) {
      const auto group = [&](Value* q, int64_t count) {
        Env from = at;
        from.axes[static_cast<size_t>(view_.pixel)] = {q, false, 1};
        finish_group(from, rest_at(row, q), count);
      };
      const int64_t whole = pixels / rest_group_ * rest_group_;
      k_.loop(k_.i64(0), k_.i64(whole), rest_group_, [&](Value* q) { group(q, rest_group_); });
      if (whole < pixels) group(k_.i64(whole), pixels - whole);
    });
  });
}

void WindowEmitter::finish_group(const Env& env, Value* from, int64_t count) {
  std::vector<StageEmitter::Point> points;
  for (int64_t p = 0; p < count; ++p)
    points.push_back({pixel_at(env, p), {k_.element(from, DType::f32, k_.i64(p * lanes_))}});
  take_turns(k_, points.size(), [&](size_t i) {
    if (fetch_rows_) fetch_rows(points[i].env);
    s_.store_resting(points[i], acc_[0]->getAllocatedType());
  });
  if (sums_) add_stored(points);
}

/// What this pixel of the next rows that rest is the first to need: as many lines as it is strides ahead, both ways.
void WindowEmitter::fetch_rows(const Env& env) {
  const SlidingDim* rows = nullptr;
  for (const SlidingDim& d : view_.sliding)
    if (d.axis == row_axis_ && d.tap >= 0) rows = &d;
  if (!rows) return;
  const Operand& data = s_.reads[static_cast<size_t>(view_.data)];
  const IndexMap& map = s_.stage.reads[static_cast<size_t>(view_.data)].map;
  for (int64_t r = 0; r < std::min(rows->stride, tap_count(rows->tap)); ++r)
    for (int64_t c = 0; c < std::min(pixel_dim_->stride, tap_count(pixel_dim_->tap)); ++c) {
      Env at = env;
      at.axes[static_cast<size_t>(row_axis_)].plus += rest_rows_;
      at.axes[static_cast<size_t>(rows->tap)] = {k_.i64(tap_count(rows->tap) - 1 - r), false, 1};
      at.axes[static_cast<size_t>(pixel_dim_->tap)] = {k_.i64(tap_count(pixel_dim_->tap) - 1 - c), false, 1};
      const Address a = address_of(k_, data, map, at, nullptr);
      prefetch(k_, k_.element(data.base, data.dtype, k_.add(a.scalar, k_.i64(a.constant))), Ahead::near);
    }
}

}  // namespace opfuse::cpu
