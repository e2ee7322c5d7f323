// What the CUDA generator accepts, wishes and chooses. Pure functions of region, layouts and target.
#include <algorithm>
#include <cmath>

#include "cuda/generator.hpp"
#include "cuda/mma_operands.hpp"
#include "cuda/row_schedule.hpp"
#include "cuda/stage.hpp"
#include "cuda/vector_body.hpp"
#include "kernel/attention_view.hpp"
#include "kernel/collapse.hpp"
#include "kernel/views.hpp"

namespace opfuse::cuda {
namespace {

bool half_type(DType d) { return d == DType::f16 || d == DType::bf16; }

/// Both operands are stored, and multiplied, in 16 bits.
bool fits_tensor_cores(const Region& region, const TileView& view) {
  const Stage& stage = region.stages[0];
  const DType dtype = stage.reductions[0].value.dtype();
  return half_type(dtype) && view.a.dtype() == dtype && view.b.dtype() == dtype && !view.n.empty() && !view.m.empty();
}

/// All results lie together along the columns, in whole vectors of eight.
bool stores_sixteen_bytes(const Stage& stage, const std::vector<ParamLayout>& layouts, int axis) {
  const auto extent = stage.domain[static_cast<size_t>(axis)].constant();
  if (!extent || *extent % 8) return false;
  for (const StageOutput& o : stage.outputs)
    if (!half_type(o.dtype) || o.clipped ||
        !lies_together(o.map, layouts[static_cast<size_t>(o.param)], static_cast<int>(stage.domain.size()), axis, 8))
      return false;
  return true;
}

bool choose_mma(const Region& region, const std::vector<ParamLayout>& layouts, Schedule& s) {
  const auto found = view_tiles(region);
  if (!std::holds_alternative<TileView>(found) || !fits_tensor_cores(region, std::get<TileView>(found))) return false;
  const TileView view = mma_view(region, layouts);
  const Stage& stage = region.stages[0];
  const int64_t m = typical_product(stage, view.m), n = typical_product(stage, view.n),
                k = typical_product(stage, view.k);
  if (std::min(m, n) < 8 || k < 8) return false;
  const bool large = m >= 128 && n >= 64 && m * n >= int64_t{1} << 19;
  s.set("mma_m", large ? 128 : 64);
  s.set("mma_n", 64);
  s.set("stages", large ? 2 : 3);
  s.set("copy_a", copies_sixteen_bytes(region, layouts, view, view.a));
  s.set("copy_b", copies_sixteen_bytes(region, layouts, view, view.b));
  s.set("vector", stores_sixteen_bytes(stage, layouts, view.n.back()) ? 8 : 1);
  return true;
}

bool choose_tiles(const Region& region, Schedule& s) {
  const auto found = view_tiles(region);
  const auto* view = std::get_if<TileView>(&found);
  if (!view) return false;
  const Stage& stage = region.stages[0];
  const int64_t m = typical_product(stage, view->m), n = typical_product(stage, view->n),
                k = typical_product(stage, view->k);
  if (std::min(m, n) < 4) return false;  // a matrix times a vector: rows
  const bool large = m >= 128 && n >= 128 && m * n >= int64_t{1} << 20;
  const int64_t per = large ? 8 : std::min(m, n) <= 16 ? 2 : 4;
  s.set("tile_m", 16 * per);
  s.set("tile_n", 16 * per);
  s.set("tile_k", k <= 8 ? 8 : 16);
  s.set("per_m", per);
  s.set("per_n", per);
  return true;
}

/// Windows in half precision: images and filters with their channels last, as tensor cores want their neighbours.
bool wish_window(const Stage& stage, const Region& region, LayoutWish& wish) {
  if (stage.anchor != Anchor::window || stage.domain.size() < 3) return false;
  const auto set = [&](int param, const IndexMap& map) {
    const TensorType& type = region.params[static_cast<size_t>(param)].type;
    if (!half_type(type.dtype) || type.shape.rank() < 3) return;
    wish.params[static_cast<size_t>(param)] = layout_along(map, type.shape.rank(), 1);
  };
  for (const Read& r : stage.reads) set(r.index, r.map);
  for (const StageOutput& o : stage.outputs) set(o.param, o.map);
  return true;
}

}  // namespace

std::optional<std::string> cannot_generate(const Region& region, const TargetInfo&) {
  if (region.stages.empty()) return "no stage";
  if (region.stages.size() > 1)
    return resembles_attention(region) ? "attention is no kernel of its own on GPUs, its products and softmax are"
                                       : "CUDA kernels have one stage";
  for (const Param& p : region.params)
    if (byte_size(p.type.dtype) == 0) return "elements of type " + std::string(name_of(p.type.dtype));
  const Stage& stage = region.stages[0];
  if (stage.outputs.empty()) return "a stage without outputs";
  if (stage.anchor == Anchor::contraction && stage.reductions.size() > 1) return "CUDA kernels have one product";
  for (const StageOutput& o : stage.outputs)
    if (o.param < 0) return "a result that stays in the kernel";
  for (const Read& r : stage.reads)
    if (r.stage >= 0) return "a read of another stage";
  return std::nullopt;
}

LayoutWish wish_layouts(const Region& original, const TargetInfo& target) {
  LayoutWish wish;
  wish.params.resize(original.params.size());
  if (cuda::cannot_generate(original, target)) return wish;
  if (wish_window(original.stages[0], original, wish)) return wish;
  Region region = original;
  split_groups(region);
  const auto found = view_tiles(region);
  const auto* view = std::get_if<TileView>(&found);
  if (!view || !fits_tensor_cores(region, *view)) return wish;
  const Stage& stage = region.stages[0];
  // channels last: the first summed axis in operands, the columns' axis in results
  const auto set = [&](int param, const IndexMap& map, int axis) {
    auto& wanted = wish.params[static_cast<size_t>(param)];
    if (!wanted) wanted = layout_along(map, region.params[static_cast<size_t>(param)].type.shape.rank(), axis);
  };
  for (const Expr* operand : {&view->a, &view->b})
    if (const int read = mma_read(*operand); read >= 0 && !view->k.empty())
      set(stage.reads[static_cast<size_t>(read)].index, stage.reads[static_cast<size_t>(read)].map, view->k.front());
  for (const StageOutput& o : stage.outputs) {
    set(o.param, o.map, view->n.back());
    for (int read : reads_used(o.value))
      if (const Read& r = stage.reads[static_cast<size_t>(read)]; r.map == o.map) set(r.index, r.map, view->n.back());
  }
  return wish;
}

Schedule choose_schedule(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  Schedule s;
  if (region.stages[0].anchor == Anchor::scatter) return s;
  Collapsed c = collapse(region, layouts);
  split_groups(c.region);
  if (choose_mma(c.region, c.layouts, s) || choose_tiles(c.region, s)) return s;
  choose_rows(c.region, c.layouts, target, s);
  return s;
}

}  // namespace opfuse::cuda
