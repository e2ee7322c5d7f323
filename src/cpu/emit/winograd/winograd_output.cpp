// Output transform and epilogue: columns, then rows; the results of a tile are stored where they belong, or, at the
// right and bottom edge, those that exist.
#include "base/integers.hpp"
#include "cpu/emit/winograd/winograd.hpp"
#include "cpu/emit/winograd/winograd_transform.hpp"
#include "tensor/winograd_codes.hpp"

namespace opfuse::cpu {
namespace {

constexpr size_t kUnrolledEpilogue = 12;  // nodes of expressions that are worth h x w copies

size_t node_count(const Stage& stage) {
  size_t count = 0;
  for (const StageOutput& o : stage.outputs) o.value.visit([&](const Expr&) { ++count; });
  return count;
}

}  // namespace

void WinogradEmitter::emit_output(const Env& env, Value* ob, Value* t0, Value* count) {
  const int64_t outputs = extent(view_.contraction.vec);
  int64_t block = lanes_;  // of the outputs' memory: whole blocks are written
  for (const Operand& o : s_.outputs)
    for (const Block& b : o.layout.blocks) block = std::max(block, b.factor);
  const int64_t stored = ceil_of(outputs, block) * block;
  Value* base = k_.mul(ob, k_.i64(block_));
  Value* end = outputs % block_ ? k_.min(k_.i64(block_), k_.sub(k_.i64(stored), base)) : k_.i64(block_);
  k_.loop(k_.i64(0), count, 1, [&](Value* t) {
    Env at = env;
    at.width = static_cast<int>(lanes_);
    at.block = block;
    move_to_tile(at, k_.add(t0, t));
    Value* from = words(sums_, k_.mul(t, k_.i64(block_)));
    k_.loop(k_.i64(0), end, lanes_, [&](Value* o) {
      Env here = at;
      Value* first = k_.add(base, o);
      here.axes[static_cast<size_t>(view_.contraction.vec)] = {first, true, lanes_};
      if (outputs % lanes_ || stored > outputs) {
        Value* numbers = k_.b.CreateAdd(k_.splat(first, here.width), k_.iota(here.width));
        here.mask = k_.b.CreateICmpULT(numbers, k_.splat(k_.i64(outputs), here.width));
      }
      emit_output_tile(here, words(from, o));
    });
  });
}

void WinogradEmitter::emit_output_tile(Env env, Value* from) {
  const int64_t height = winograd::points(tile_.h), width = winograd::points(tile_.w);
  std::vector<Line> columns;
  for (int64_t x = 0; x < width; ++x) {
    Line column;
    for (int64_t y = 0; y < height; ++y)
      column.push_back(load_vector(words(from, k_.i64((y * width + x) * sum_point_))));
    columns.push_back(transform_result(k_, tile_.h, codes_, column));
  }
  std::vector<Line> results;
  for (int64_t y = 0; y < tile_.h; ++y) {
    Line row;
    for (const Line& column : columns) row.push_back(column[static_cast<size_t>(y)]);
    results.push_back(transform_result(k_, tile_.w, codes_, row));
  }
  if (codes_)
    for (Line& row : results)
      for (Value*& result : row) result = divided(result);
  if (!codes_ && node_count(s_.stage) > kUnrolledEpilogue) return store_some_results(env, results);
  Value* whole = k_.b.getTrue();
  for (const auto& [d, size] : {std::pair{&view_.row, tile_.h}, {&view_.column, tile_.w}}) {
    if (extent(d->axis) % size == 0) continue;
    Value* last = k_.add(env.axes[static_cast<size_t>(d->axis)].base, k_.i64(size));
    whole = k_.b.CreateAnd(whole, k_.b.CreateICmpSLE(last, k_.i64(extent(d->axis))));
  }
  k_.branch(
      whole, [&] { store_results(env, results); }, [&] { store_some_results(env, results); });
}

/// The sum of a denominator's multiple, modulo 2^32.
Value* WinogradEmitter::divided(Value* result) {
  const winograd::CodesForm &h = winograd::codes_form(tile_.h), &w = winograd::codes_form(tile_.w);
  const uint32_t inverse = winograd::inverse_of(static_cast<uint32_t>(h.odd * w.odd));
  if (inverse != 1) result = k_.b.CreateMul(result, llvm::ConstantInt::get(result->getType(), inverse));
  return k_.b.CreateAShr(result, static_cast<uint64_t>(h.shift + w.shift));
}

/// A row of codes is stored together (stage_codes.cpp).
void WinogradEmitter::store_results(const Env& env, const std::vector<Line>& results) {
  std::vector<StageEmitter::Point> points;
  for (size_t y = 0; y < results.size(); ++y)
    for (size_t x = 0; x < results[y].size(); ++x) {
      Env at = env;
      at.axes[static_cast<size_t>(view_.row.axis)].plus = static_cast<int64_t>(y);
      at.axes[static_cast<size_t>(view_.column.axis)].plus = static_cast<int64_t>(x);
      points.push_back({at, {results[y][x]}});
    }
  if (codes_) return s_.store_outputs(points);
  for (const StageEmitter::Point& point : points) s_.store_outputs(point.env, point.results);
}

/// Through scratch, one after another: those inside the image.
void WinogradEmitter::store_some_results(const Env& env, const std::vector<Line>& results) {
  for (int64_t y = 0; y < tile_.h; ++y)
    for (int64_t x = 0; x < tile_.w; ++x)
      store_vector(words(results_, k_.i64((y * tile_.w + x) * lanes_)),
                   results[static_cast<size_t>(y)][static_cast<size_t>(x)]);
  const auto last = [&](const SlidingDim& d, int64_t size) {
    Value* first = env.axes[static_cast<size_t>(d.axis)].base;
    return k_.min(k_.i64(extent(d.axis)), k_.add(first, k_.i64(size)));
  };
  Value* y0 = env.axes[static_cast<size_t>(view_.row.axis)].base;
  Value* x0 = env.axes[static_cast<size_t>(view_.column.axis)].base;
  k_.loop(y0, last(view_.row, tile_.h), 1, [&](Value* y) {
    Value* row = words(results_, k_.mul(k_.sub(y, y0), k_.i64(tile_.w * lanes_)));
    k_.loop(x0, last(view_.column, tile_.w), 1, [&](Value* x) {
      Env at = env;
      at.axes[static_cast<size_t>(view_.row.axis)] = {y, false, 1};
      at.axes[static_cast<size_t>(view_.column.axis)] = {x, false, 1};
      s_.store_outputs(at, {load_vector(words(row, k_.mul(k_.sub(x, x0), k_.i64(lanes_))))});
    });
  });
}

}  // namespace opfuse::cpu
