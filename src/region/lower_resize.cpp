// Resize. Open axes stay as they are, repeat elements, or compute where they read. Where an axis's source position is a
// multiple or a quotient of the result's coordinate (nearest by whole factors) it is an index term; otherwise it is a
// table made while lowering, read at the coordinate. Linear and cubic: positions and weights of 2 or 4
// taps per axis (more with antialiasing), a read for each combination.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/limits.hpp"
#include "expr/domain.hpp"
#include "ops/resize_taps.hpp"
#include "region/index_map.hpp"
#include "region/lowering.hpp"
#include "region/open_resize.hpp"

namespace opfuse {
namespace {

class ResizeLowering {
 public:
  ResizeLowering(Lowering& lowering, const Node& node, const IndexMap& map)
      : lowering_(lowering),
        node_(node),
        attrs_(node.as<Resize>()),
        map_(map),
        dtype_(node.output()->type.dtype),
        computed_in_(is_float(dtype_) ? dtype_ : DType::f64) {
    const Shape &x = node.input(0)->type.shape, &y = node.output()->type.shape;
    for (size_t i = 1; i < 3; ++i)
      if (node.input(i) != nullptr && lowering.constant_of(node.input(i)) == nullptr)
        decline("dynamic_operand", "the scales of a resize must be constant", node);
    const Tensor sizes = sizes_operand();
    axes_ = resize_axes(attrs_, sizes_of(x), lowering.constant_of(node.input(1)), lowering.constant_of(node.input(2)),
                        node.input(3) != nullptr ? &sizes : nullptr);
    for (size_t axis = 0; axis < x.rank(); ++axis) factors_.push_back(open_factor(axis, x[axis], y[axis]));
  }

  Expr run() {
    const Expr value = attrs_.mode == ResizeMode::nearest ? nearest() : interpolated();
    if (attrs_.coordinate_transformation_mode != CoordinateMode::tf_crop_and_resize) return value;
    Expr inside;
    for (size_t axis = 0; axis < axes_.size(); ++axis) {
      std::vector<double> table;
      for (int64_t o = 0; o < axes_[axis].out; ++o) {
        const double x = coordinate(axis, o);
        table.push_back(x >= 0 && x <= static_cast<double>(axes_[axis].in - 1) ? 1 : 0);
      }
      if (std::all_of(table.begin(), table.end(), [](double t) { return t == 1; })) continue;
      const Expr here = not_equal(table_read(axis, table, DType::i64), dim_value(0));
      inside = inside ? logical_and(inside, here) : here;
    }
    return inside ? select(inside, value, Expr::constant(dtype_, extrapolated(attrs_, dtype_))) : value;
  }

 private:
  Lowering& lowering_;
  const Node& node_;
  const Resize::Attrs& attrs_;
  const IndexMap& map_;
  DType dtype_;
  DType computed_in_;  ///< of filters: integers have no weights of their own
  std::vector<ResizeAxis> axes_;
  /// Of open axes: how often an element is repeated, or kComputed; 0: the extents are known.
  std::vector<int64_t> factors_;
  static constexpr int64_t kComputed = -1;

  /// Open axes that stay as they are, or repeat elements a whole number of times, need no table nor arithmetic.
  int64_t open_factor(size_t axis, const Dim& x, const Dim& y) const {
    if (x.is_constant() && y.is_constant()) return 0;
    const CoordinateMode mode = attrs_.coordinate_transformation_mode;
    const bool crops = mode == CoordinateMode::tf_crop_and_resize;
    if (x == y && !crops) return 1;
    const Dim factor = floor_div(y, x == Dim(0) ? Dim(1) : x);
    const bool centred = mode == CoordinateMode::half_pixel || mode == CoordinateMode::pytorch_half_pixel;
    const bool rounds =
        attrs_.nearest_mode == NearestMode::round_prefer_floor || attrs_.nearest_mode == NearestMode::round_prefer_ceil;
    const bool repeats = (mode == CoordinateMode::asymmetric && attrs_.nearest_mode == NearestMode::floor) ||
                         (centred && rounds);  // a centre lies in the middle of what it is repeated for
    if (!crops && attrs_.mode == ResizeMode::nearest && repeats && factor.is_constant() && factor.value() > 1 &&
        x * factor == y)
      return factor.value();
    const bool stretches = node_.input(3) == nullptr || attrs_.keep_aspect_ratio_policy == AspectPolicy::stretch;
    if (stretches && OpenResizeAxis::covers(attrs_, scale_of(axis))) return kComputed;
    decline("symbolic_resize",
            attrs_.antialias ? "an open axis with antialias: how many elements its filter takes is not known"
                             : "the tables of a resize need fixed dimensions",
            node_);
  }

  /// The scale of an axis where it is a number; with sizes it is what the extents are to each other.
  std::optional<double> scale_of(size_t axis) const {
    if (node_.input(3) != nullptr) return std::nullopt;
    return axes_[axis].scale;
  }

  OpenResizeAxis open_axis(size_t axis) const {
    return {attrs_, node_.input(0)->type.shape[axis], node_.output()->type.shape[axis], scale_of(axis),
            index_value(map_.dims[axis])};
  }

  /// With 1 for open extents: their coordinates are not asked for.
  std::vector<int64_t> sizes_of(const Shape& shape) const {
    std::vector<int64_t> sizes;
    for (const Dim& dim : shape.dims) sizes.push_back(dim.is_constant() ? dim.value() : 1);
    return sizes;
  }

  Tensor sizes_operand() const {
    if (node_.input(3) == nullptr) return {};
    return Tensor::from_i64(sizes_of(Shape(lowering_.positions_of(node_, 3))));
  }

  double coordinate(size_t axis, int64_t o) const {
    return resize_coordinate(attrs_.coordinate_transformation_mode, axes_[axis], o);
  }
  bool unchanged(size_t axis) const {
    if (factors_[axis] != 0) return factors_[axis] == 1;
    const ResizeAxis& a = axes_[axis];
    if (a.is_identity(attrs_.coordinate_transformation_mode)) return true;  // also where centres lie at o + 0.5
    for (int64_t o = 0; o < a.out; ++o)
      if (a.in != a.out || coordinate(axis, o) != static_cast<double>(o)) return false;
    return true;
  }

  Expr table_read(size_t axis, const std::vector<double>& table, DType dtype) {
    const TensorType type{dtype, Shape{Dim(static_cast<int64_t>(table.size()))}};
    const auto size = static_cast<int64_t>(table.size());
    return lowering_.pull_made(type, [table, dtype, size] { return Tensor::of<double>(dtype, {size}, table); },
                               {{map_.dims[axis]}});
  }

  IndexExpr positions(size_t axis, const std::vector<double>& table) {
    const auto size = static_cast<int64_t>(table.size());
    for (int64_t factor = 1; factor <= 16; ++factor) {
      bool quotient = true, multiple = true;
      for (int64_t o = 0; o < size; ++o) {
        quotient &= table[static_cast<size_t>(o)] == static_cast<double>(o / factor);
        multiple &= table[static_cast<size_t>(o)] == static_cast<double>(o * factor) + table[0];
      }
      IndexExpr inner;
      inner.terms.push_back({1, static_cast<int>(axis)});
      if (quotient) inner.terms[0].div = factor;
      if (multiple && !quotient) inner.terms[0].coef = factor, inner.offset = Dim(static_cast<int64_t>(table[0]));
      if (quotient || multiple) return compose({{inner}}, map_, lowering_.extents()).dims[0];
    }
    IndexExpr result;
    result.dynamic = table_read(axis, table, DType::i64);
    return result;
  }

  static IndexExpr computed(const Expr& at) {
    IndexExpr index;
    index.dynamic = at;
    return index;
  }

  Expr nearest() {
    IndexMap at;
    for (size_t axis = 0; axis < axes_.size(); ++axis) {
      if (factors_[axis] > 1) {
        const IndexExpr inner{{{1, static_cast<int>(axis), factors_[axis]}}, 0, {}};
        at.dims.push_back(compose({{inner}}, map_, lowering_.extents()).dims[0]);
        continue;
      }
      if (factors_[axis] == kComputed) {
        at.dims.push_back(computed(open_axis(axis).nearest()));
        continue;
      }
      std::vector<double> table;
      for (int64_t o = 0; o < axes_[axis].out; ++o)
        table.push_back(static_cast<double>(
            std::clamp<int64_t>(resize_nearest(attrs_.nearest_mode, coordinate(axis, o)), 0, axes_[axis].in - 1)));
      at.dims.push_back(unchanged(axis) ? map_.dims[axis] : positions(axis, table));
    }
    return lowering_.pull(node_.input(0), at);
  }

  /// One tap of one axis: where each result reads, and with which weight.
  struct Tap {
    IndexExpr at;
    Expr weight;
  };

  /// Taps of one axis; none where the axis stays as it is.
  std::vector<Tap> taps_of(size_t axis) {
    std::vector<Tap> taps;
    if (unchanged(axis)) return taps;
    if (factors_[axis] == kComputed) {
      for (const OpenTap& tap : open_axis(axis).taps())
        taps.push_back({computed(tap.at), cast(tap.weight, computed_in_)});
      return taps;
    }
    const ResizeTaps all = resize_taps(attrs_, axes_[axis]);
    for (int64_t k = 0; k < all.count; ++k) {
      std::vector<double> at, weight;
      for (int64_t i = k; i < axes_[axis].out * all.count; i += all.count) {
        at.push_back(static_cast<double>(all.positions[static_cast<size_t>(i)]));
        weight.push_back(all.weights[static_cast<size_t>(i)]);
      }
      if (std::all_of(weight.begin(), weight.end(), [](double w) { return w == 0; })) continue;
      taps.push_back({positions(axis, at), table_read(axis, weight, computed_in_)});
    }
    // Of two weights that add up to 1 one table is enough.
    if (attrs_.mode == ResizeMode::linear && all.count == 2 && taps.size() == 2 && !attrs_.exclude_outside)
      taps[0].weight = Expr(1.0) - taps[1].weight;
    return taps;
  }

  Expr interpolated() {
    std::vector<std::vector<Tap>> taps;
    size_t reads = 1;
    for (size_t axis = 0; axis < axes_.size(); ++axis) {
      taps.push_back(taps_of(axis));
      reads *= std::max<size_t>(1, taps.back().size());
    }
    if (const auto most = static_cast<size_t>(limits_in_force().resize_reads); reads > most)
      decline("many_taps",
              fmt::format("a result reads {} elements, {} at most in one kernel; {}", reads, most,
                          how_to_raise("resize_reads")),
              node_);
    return cast(interpolated(taps, {}), dtype_);
  }

  /// Sum of weight * value along the next axis, recursively over the axes after it.
  Expr interpolated(const std::vector<std::vector<Tap>>& taps, const IndexMap& at) {
    const size_t axis = at.dims.size();
    if (axis == axes_.size()) return cast(lowering_.pull(node_.input(0), at), computed_in_);
    IndexMap next = at;
    next.dims.push_back(map_.dims[axis]);
    if (taps[axis].empty()) return interpolated(taps, next);
    Expr sum;
    for (const Tap& tap : taps[axis]) {
      next.dims.back() = tap.at;
      const Expr term = interpolated(taps, next) * tap.weight;
      sum = sum ? sum + term : term;
    }
    return sum;
  }
};

Expr pull_resize(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  return ResizeLowering(lowering, node, map).run();
}

constexpr LowerRule kRules[] = {{.op = "resize", .pull = pull_resize}};

}  // namespace

std::span<const LowerRule> resize_rules() { return kRules; }

}  // namespace opfuse
