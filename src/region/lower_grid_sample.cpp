// GridSample as computed reads: the taps of each axis are expressions of the grid's element, and a result is the sum
// of their combinations (2 x 2 reads of an image, linear). Reads are clamped into the axis whatever the grid holds.
#include "expr/domain.hpp"
#include "ops/grid_sample.hpp"
#include "region/lowering.hpp"

namespace opfuse {
namespace {

struct Tap {
  IndexExpr element;
  Expr weight;
  Expr inside;  ///< empty: the element counts wherever it is
};

class GridLowering {
 public:
  GridLowering(Lowering& lowering, const Node& node, const IndexMap& map)
      : lowering_(lowering), node_(node), attrs_(node.as<GridSample>()), map_(map), x_(node.input(0)->type) {
    const bool wide = x_.dtype == DType::f64 || node.input(1)->type.dtype == DType::f64;
    dtype_ = wide ? DType::f64 : DType::f32;
  }

  Expr run() {
    std::vector<std::vector<Tap>> taps;
    for (size_t axis = 0; axis + 2 < x_.shape.rank(); ++axis) taps.push_back(taps_of(axis));
    IndexMap at;
    at.dims = {map_.dims[0], map_.dims[1]};
    const Expr value = sum(taps, at, Expr());
    return x_.dtype == dtype_ ? value : cast(value, x_.dtype);
  }

 private:
  Lowering& lowering_;
  const Node& node_;
  const GridSample::Attrs& attrs_;
  const IndexMap& map_;
  const TensorType& x_;
  DType dtype_;

  Expr real(double value) const { return Expr::constant(dtype_, value); }

  Expr typed(const Expr& value) const { return value.dtype() == dtype_ ? value : cast(value, dtype_); }

  std::vector<Tap> taps_of(size_t axis) {
    const size_t spatial = x_.shape.rank() - 2;
    IndexMap at;
    at.dims.push_back(map_.dims[0]);
    for (size_t i = 0; i < spatial; ++i) at.dims.push_back(map_.dims[i + 2]);
    at.dims.push_back(IndexExpr{{}, Dim(static_cast<int64_t>(spatial - 1 - axis)), {}});
    const Dim& extent = x_.shape[axis + 2];
    const Expr size =
        extent.is_constant() ? real(static_cast<double>(extent.value())) : cast(dim_value(extent), dtype_);
    const Expr x = grid_coordinate(attrs_, typed(lowering_.pull(node_.input(1), at)), size);
    const Expr low = attrs_.mode == GridMode::nearest ? x : floor(x);
    std::vector<Tap> taps;
    for (int k = 0; k < grid_taps(attrs_.mode); ++k) {
      const int offset = grid_first(attrs_.mode) + k;
      const Expr position = offset == 0 ? low : low + real(offset);
      Tap tap;
      tap.element.dynamic = cast(grid_element(attrs_, position, size), DType::i64);
      tap.weight = attrs_.mode == GridMode::nearest ? Expr() : grid_weight(attrs_.mode, k, x - low);
      if (attrs_.padding_mode == GridPadding::zeros)
        tap.inside = logical_and(greater_equal(position, real(0)), less_equal(position, size - real(1)));
      taps.push_back(std::move(tap));
    }
    return taps;
  }

  /// Over the taps of the next axis and those after it; `inside` holds for the axes before.
  Expr sum(const std::vector<std::vector<Tap>>& taps, const IndexMap& at, const Expr& inside) {
    const size_t axis = at.dims.size() - 2;
    if (axis == taps.size()) {
      const Expr value = typed(lowering_.pull(node_.input(0), at));
      return inside ? select(inside, value, real(0)) : value;
    }
    Expr total;
    for (const Tap& tap : taps[axis]) {
      IndexMap next = at;
      next.dims.push_back(tap.element);
      const Expr here = inside && tap.inside ? logical_and(inside, tap.inside) : tap.inside;
      Expr term = sum(taps, next, here);
      if (tap.weight) term = term * tap.weight;
      total = total ? total + term : term;
    }
    return total;
  }
};

Expr pull_grid_sample(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  return GridLowering(lowering, node, map).run();
}

constexpr LowerRule kRules[] = {{.op = "grid_sample", .pull = pull_grid_sample}};

}  // namespace

std::span<const LowerRule> grid_rules() { return kRules; }

}  // namespace opfuse
