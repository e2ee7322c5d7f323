// Results in whole blocks of the outputs' memory: lanes behind the last channel are masked where they are computed, and
// stored as zeros where the memory has them.
#include "cpu/emit/contraction/epilogue.hpp"

#include <algorithm>

#include "cpu/emit/contraction/policies.hpp"
#include "cpu/emit/sum_start.hpp"

namespace opfuse::cpu {

static constexpr size_t kStoredAtOnce = 8;  // sums in memory come to registers a few at a time

/// Vectors of a pixel behind each other: two of bf16 results are one store.
static std::vector<StageEmitter::Point> by_pixels(const ContractionPlan& plan,
                                                  const std::vector<StageEmitter::Point>& points, int64_t pixels) {
  const auto vectors = static_cast<int64_t>(points.size()) / pixels;
  const bool pairs = plan.block % (2 * plan.lanes) == 0;
  std::vector<StageEmitter::Point> ordered;
  for (int64_t p = 0; p < pixels; ++p)
    for (int64_t v = 0; v < vectors; ++v) {
      ordered.push_back(points[static_cast<size_t>(v * pixels + p)]);
      ordered.back().pairs = pairs && v % 2 == 0 && v + 1 < vectors;
    }
  return ordered;
}

/// At the tile's first pixel, by vector of channels that is stored.
static std::vector<Env> vectors_of(const ContractionPlan& plan, const Tile& tile, const Env& env, bool last) {
  Kernel& k = plan.k;
  const int64_t channels = plan.channels(), lanes = plan.lanes;
  int64_t block = 1;  // of the outputs' memory: whole blocks are written
  for (const Operand& o : plan.s.outputs)
    for (const Block& b : o.layout.blocks) block = std::max(block, b.factor);
  const int64_t stored = (channels + block - 1) / block * block, narrow = channels / plan.block * plan.block;
  Value* base = last ? k.i64(narrow) : k.mul(tile.block, k.i64(plan.block));
  std::vector<Env> vectors;
  for (int64_t v = 0; v < tile.form.vectors; ++v) {
    Env at = env;
    at.block = block;
    at.width = static_cast<int>(lanes);
    at.axes[static_cast<size_t>(plan.view.vec)] = {k.add(base, k.i64(v * lanes)), true, lanes};
    if (last) {
      const int64_t first = narrow + v * lanes;
      if (first >= stored) break;
      std::vector<llvm::Constant*> bits;
      for (int64_t l = 0; l < lanes; ++l) bits.push_back(k.b.getInt1(first + l < channels));
      if (first + lanes > channels) at.mask = llvm::ConstantVector::get(bits);
    }
    vectors.push_back(std::move(at));
  }
  return vectors;
}

/// `body` with whether the tile's block is the last, narrower one.
static void by_block(const ContractionPlan& plan, const Tile& tile, const std::function<void(bool last)>& body) {
  if (tile.form.outputs != Outputs::decided) return body(tile.form.outputs == Outputs::last);
  Kernel& k = plan.k;
  const int64_t whole = plan.channels() / plan.block;
  k.branch(
      k.b.CreateICmpSLT(tile.block, k.i64(whole)), [&] { body(false); }, [&] { body(true); });
}

void start_with_bias(const ContractionPlan& plan, const Tile& tile, const Env& env) {
  Kernel& k = plan.k;
  by_block(plan, tile, [&](bool last) {
    const std::vector<Env> stored = vectors_of(plan, tile, env, last);
    for (int64_t v = 0; v < tile.form.vectors; ++v) {
      const auto at = static_cast<size_t>(v);
      Value* start = at < stored.size() ? load_bias(plan.s, plan.bias, stored[at]) : k.zero(plan.product.sums);
      if (tile.form.half && v + 1 == tile.form.vectors) start = twice_lower(k, start, width_of(start));
      for (int64_t p = 0; p < tile.pixels(); ++p) k.b.CreateStore(start, plan.places[tile.form.place_of(p, v)]);
    }
  });
}

std::vector<StageEmitter::Point> points_of(const ContractionPlan& plan, const Tile& tile, const Env& env, bool last) {
  Kernel& k = plan.k;
  std::vector<StageEmitter::Point> points;
  const std::vector<Env> vectors = vectors_of(plan, tile, env, last);
  for (size_t vector = 0; vector < vectors.size(); ++vector) {
    Env at = vectors[vector];
    const auto v = static_cast<int64_t>(vector);
    for (int64_t p = 0; p < tile.pixels(); ++p) {
      move_to_pixel(plan, tile, p, at);
      std::vector<Value*> results;
      for (int64_t sum = 0; sum < plan.sums; ++sum) {
        const int64_t of_pixel = plan.schedule.matrix ? plan.vectors : tile.form.factors();
        const int64_t place = p * of_pixel + sum * tile.form.vectors + v;
        results.push_back(plan.places[static_cast<size_t>(place)]);
      }
      points.push_back({at, std::move(results)});
    }
  }
  if (k.rounds_halves) return by_pixels(plan, points, tile.pixels());
  return points;
}

void emit_epilogue(const ContractionPlan& plan, const Tile& tile, const Env& env) {
  Kernel& k = plan.k;
  const auto store = [&](bool last) {
    const std::vector<StageEmitter::Point> all = points_of(plan, tile, env, last);
    const size_t most = plan.schedule.matrix ? kStoredAtOnce : all.size();
    for (size_t first = 0; first < all.size(); first += most) {
      const size_t end = std::min(first + most, all.size());
      std::vector<StageEmitter::Point> points(all.begin() + static_cast<ptrdiff_t>(first),
                                              all.begin() + static_cast<ptrdiff_t>(end));
      for (StageEmitter::Point& point : points)
        for (Value*& result : point.results) result = k.b.CreateLoad(plan.product.sums, result);
      plan.s.store_outputs(points);
    }
  };
  if (tile.form.half) split_pairs(plan, tile);
  by_block(plan, tile, store);
}

}  // namespace opfuse::cpu
