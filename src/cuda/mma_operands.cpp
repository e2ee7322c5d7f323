#include "cuda/mma_operands.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cuda/skeletons.hpp"
#include "cuda/stage.hpp"
#include "cuda/vector_body.hpp"

namespace opfuse::cuda {

int mma_read(const Expr& e) {
  if (e.op() == ExprOp::read) return e.index();
  if (e.op() != ExprOp::select || e.args()[0].op() != ExprOp::in_bounds || e.args()[1].op() != ExprOp::read) return -1;
  const int read = e.args()[1].index();
  const Expr& fill = e.args()[2];
  return e.args()[0].index() == read && fill.is_constant() && fill.value() == 0 ? read : -1;
}

namespace {

bool widens(const Expr& e) {
  return e.op() == ExprOp::cast && e.dtype() == DType::f32 && is_factor(e.args()[0].dtype());
}

/// The factor that is widened, possibly inside of its guard; empty: there is none.
Expr narrow_form(const Expr& e) {
  if (is_factor(e.dtype())) return e;
  if (widens(e)) return e.args()[0];
  if (e.op() != ExprOp::select || e.args()[0].op() != ExprOp::in_bounds || !widens(e.args()[1])) return {};
  const Expr &x = e.args()[1].args()[0], &fill = e.args()[2];
  if (!fill.is_constant() || fill.value() != 0) return {};
  return Expr::make(ExprOp::select, {e.args()[0], x, Expr::constant(x.dtype(), 0)});
}

}  // namespace

std::optional<TileView> factors_of(const TileView& view) {
  TileView narrow = view;
  narrow.a = narrow_form(view.a);
  narrow.b = narrow_form(view.b);
  if (!narrow.a || !narrow.b || narrow.a.dtype() != narrow.b.dtype()) return std::nullopt;
  return narrow;
}

TileView mma_view(const Region& region, const std::vector<ParamLayout>& layouts) {
  const TileView view = *factors_of(std::get<TileView>(view_tiles(region)));
  TileView best = view;
  int most = -1;
  for (size_t last = view.k.size(); last-- > 0;) {
    TileView candidate = view;
    std::rotate(candidate.k.begin() + static_cast<std::ptrdiff_t>(last),
                candidate.k.begin() + static_cast<std::ptrdiff_t>(last) + 1, candidate.k.end());
    const int copies = copies_sixteen_bytes(region, layouts, candidate, candidate.a) +
                       copies_sixteen_bytes(region, layouts, candidate, candidate.b);
    if (copies > most) most = copies, best = candidate;
  }
  return best;
}

bool copies_sixteen_bytes(const Region& region, const std::vector<ParamLayout>& layouts, const TileView& view,
                          const Expr& operand) {
  const int read = mma_read(operand);
  if (read < 0 || view.k.empty()) return false;
  const Stage& stage = region.stages[0];
  const Read& r = stage.reads[static_cast<size_t>(read)];
  const int axis = view.k.back();
  const int axes = static_cast<int>(stage.domain.size() + stage.reduce.size());
  const auto extent = stage.reduce[static_cast<size_t>(axis) - stage.domain.size()].constant();
  const Shape& shape = region.params[static_cast<size_t>(r.index)].type.shape;
  const int64_t chunk = chunk_of(operand.dtype());
  const auto whole_chunks = [&](const IndexExpr& d) {
    const auto size = shape[static_cast<size_t>(&d - r.map.dims.data())].constant();
    return operand.op() == ExprOp::read || (size && *size % chunk == 0);
  };
  // a guard that depends on the position within the vector cannot choose 16 bytes at once
  for (const IndexExpr& d : r.map.dims)
    for (const IndexTerm& t : d.terms)
      if (t.axis == axis && (!(d.offset == Dim(0)) || !whole_chunks(d))) return false;
  return extent && *extent % chunk == 0 &&
         lies_together(r.map, layouts[static_cast<size_t>(r.index)], axes, axis, chunk);
}

int64_t stored_together(const Stage& stage, const std::vector<ParamLayout>& layouts, int axis) {
  size_t widest = 2;
  for (const StageOutput& o : stage.outputs) widest = std::max(widest, byte_size(o.dtype));
  const auto vector = static_cast<int64_t>(16 / widest);
  const auto extent = stage.domain[static_cast<size_t>(axis)].constant();
  if (widest > 4 || !extent || *extent % vector) return 1;
  for (const StageOutput& o : stage.outputs)
    if (byte_size(o.dtype) < 2 || o.clipped ||
        !lies_together(o.map, layouts[static_cast<size_t>(o.param)], static_cast<int>(stage.domain.size()), axis,
                       vector))
      return 1;
  return vector;
}

std::optional<Layout> layout_along(const IndexMap& map, size_t rank, int axis) {
  for (size_t d = 0; d < map.dims.size(); ++d)
    for (const IndexTerm& t : map.dims[d].terms) {
      if (t.axis != axis || !(t.coef == Dim(1)) || !(t.div == Dim(1))) continue;
      if (d + 1 == rank) return std::nullopt;
      Layout layout = Layout::dense(rank);
      layout.order.erase(layout.order.begin() + static_cast<std::ptrdiff_t>(d));
      layout.order.push_back(static_cast<int>(d));
      return layout;
    }
  return std::nullopt;
}

std::optional<std::string> refuse_tiles(const StagedTiles& tiles, const Region& region,
                                        const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  const TileView view = mma_view(region, layouts);
  const auto size = static_cast<int64_t>(byte_size(view.a.dtype()));
  if (const int64_t bytes = tiles.stages * (tiles.rows + tiles.columns) * tiles.depth * size;
      bytes > target.shared_kilobytes << 10)
    return fmt::format("{} stages are {} bytes, more than a block has", tiles.stages, bytes);
  if (tiles.copy_a && !copies_sixteen_bytes(region, layouts, view, view.a)) return "copy_a=1 of data that lie apart";
  if (tiles.copy_b && !copies_sixteen_bytes(region, layouts, view, view.b)) return "copy_b=1 of data that lie apart";
  if (tiles.vector != 1 && tiles.vector != stored_together(region.stages[0], layouts, view.n.back()))
    return fmt::format("vector={} of results that lie apart", tiles.vector);
  return std::nullopt;
}

}  // namespace opfuse::cuda
