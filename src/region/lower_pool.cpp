// Pooling. Windows: domain [n, c, p...], reduce [r...], one max or sum; taps outside the input are the
// neutral element. The divisor of an average is constant, or counted per axis in closed form:
//   taps t in [0, kernel) with 0 <= o*stride - pad + t*dilation < extent
// (with count_include_pad the extent is the padded one). Global pooling is a row: reduce all spatial axes.
#include <limits>

#include "expr/domain.hpp"
#include "ops/global_pool.hpp"
#include "ops/pool.hpp"
#include "region/sliding.hpp"

namespace opfuse {
namespace {

Expr lowest(DType dtype) {
  if (is_float(dtype)) return Expr::constant(dtype, -std::numeric_limits<double>::infinity());
  const int bits = bit_size(dtype);
  return Expr::integer(dtype, is_signed(dtype) ? static_cast<int64_t>(~uint64_t{0} << (bits - 1)) : 0);
}

/// Opens the window's stage; the operand at each tap, `fill` outside the input.
Expr open_window(Lowering& lowering, const Node& node, const std::vector<WindowAxis>& windows, const Expr& fill) {
  const Shape& y = node.output()->type.shape;
  std::vector<Dim> reduce;
  for (const WindowAxis& window : windows) reduce.emplace_back(window.kernel);
  lowering.open(Anchor::window, y.dims, std::move(reduce));
  IndexMap map = IndexMap::identity(2);
  for (size_t s = 0; s < windows.size(); ++s)
    map.dims.push_back(
        window_index(windows[s], static_cast<int>(s) + 2, static_cast<int>(y.rank()) + static_cast<int>(s)));
  if (!leaves_input(windows)) return lowering.pull(node.input(0), map);
  return lowering.pull_guarded(node.input(0), map, fill, node);
}

/// Where each maximum was, counted over the whole tensor: of equal ones the first in row-major order.
void lower_max_indices(Lowering& lowering, const Node& node, const std::vector<WindowAxis>& windows) {
  const Shape &x = node.input(0)->type.shape, &y = node.output()->type.shape;
  const Expr value = open_window(lowering, node, windows, lowest(node.output()->type.dtype));
  lowering.stage().anchor = Anchor::row;
  const Expr best = lowering.reduce(ReduceKind::max, value);
  Expr at = dim_value(0);
  for (size_t s = 0; s < windows.size(); ++s) {
    const int axis = static_cast<int>(s) + 2;
    const int tap = static_cast<int>(y.rank() + s);
    at = at * dim_value(x[s + 2]) + index_value(window_index(windows[s], axis, tap));
  }
  const Expr none = Expr::integer(DType::i64, std::numeric_limits<int64_t>::max());
  const Expr first = lowering.reduce(ReduceKind::min, select(equal(value, best), at, none));
  Expr plane = dim_value(1), inside = first;
  for (size_t s = 0; s < windows.size(); ++s) plane = plane * dim_value(x[s + 2]);
  if (node.as<MaxPool>().storage_order == 1) {  // the same element with the first spatial axis fastest
    Expr rest = first;
    inside = dim_value(0);
    for (size_t s = windows.size(); s-- > 0;) {
      inside = inside * dim_value(x[s + 2]) + mod(rest, dim_value(x[s + 2]));
      rest = rest / dim_value(x[s + 2]);
    }
  }
  const Expr image = Expr::coord(0) * dim_value(x[1]) + Expr::coord(1);
  lowering.define(node.outputs[1], image * plane + inside);
}

void lower_max_pool(Lowering& lowering, const Node& node) {
  const auto windows = node.as<MaxPool>().window(node.input(0)->type.shape);
  if (node.outputs.size() > 1) lower_max_indices(lowering, node, windows);
  const Expr x = open_window(lowering, node, windows, lowest(node.output()->type.dtype));
  lowering.define(node.output(), lowering.reduce(ReduceKind::max, x));
}

/// Taps of output coordinate `axis` whose position lies in [low, high): i64.
Expr tap_count(const WindowAxis& w, int axis, const Dim& low, const Dim& high) {
  const Expr start = Expr::coord(axis) * dim_value(Dim(w.stride)) - dim_value(w.pad_begin);
  auto taps_below = [&](const Dim& limit) {  // ceil((limit - start) / dilation), between 0 and kernel
    Expr taps = dim_value(limit + Dim(w.dilation - 1)) - start;
    taps = maximum(taps, dim_value(0)) / dim_value(Dim(w.dilation));
    return minimum(taps, dim_value(Dim(w.kernel)));
  };
  return taps_below(high) - taps_below(low);
}

Expr average_divisor(const Node& node, const std::vector<WindowAxis>& windows, bool include_pad) {
  const DType dtype = node.output()->type.dtype;
  double constant = 1;
  Expr counted;
  for (size_t s = 0; s < windows.size(); ++s) {
    WindowAxis w = windows[s];
    const Dim low = include_pad ? Dim(0) - w.pad_begin : Dim(0);
    const Dim high = include_pad ? w.in + w.pad_end : w.in;
    WindowAxis inside = w;  // the same window over the extent that counts
    inside.in = high;
    if (include_pad) inside.in = high + w.pad_begin, inside.pad_begin = 0, inside.pad_end = 0;
    if (!leaves_input({inside})) {
      constant *= static_cast<double>(w.kernel);
      continue;
    }
    const Expr count = cast(tap_count(w, static_cast<int>(s) + 2, low, high), dtype);
    counted = counted ? counted * count : count;
  }
  if (!counted) return Expr::constant(dtype, constant);
  return constant == 1 ? counted : counted * Expr::constant(dtype, constant);
}

void lower_average_pool(Lowering& lowering, const Node& node) {
  const AveragePool::Attrs& attrs = node.as<AveragePool>();
  const auto windows = attrs.window(node.input(0)->type.shape);
  const Expr x = open_window(lowering, node, windows, Expr::constant(node.output()->type.dtype, 0));
  const Expr sum = lowering.reduce(ReduceKind::sum, x);
  lowering.define(node.output(), sum / average_divisor(node, windows, attrs.count_include_pad));
}

/// |x|^p and its inverse, exact where p is 1 or 2.
Expr power(const Expr& x, int64_t p) {
  if (p == 1) return abs(x);
  return p == 2 ? x * x : pow(abs(x), Expr::constant(x.dtype(), static_cast<double>(p)));
}
Expr root(const Expr& sum, int64_t p) {
  if (p == 1) return sum;
  return p == 2 ? sqrt(sum) : pow(sum, Expr::constant(sum.dtype(), 1.0 / static_cast<double>(p)));
}

void lower_lp_pool(Lowering& lowering, const Node& node) {
  const LpPool::Attrs& attrs = node.as<LpPool>();
  const auto windows = attrs.window(node.input(0)->type.shape);
  const Expr x = open_window(lowering, node, windows, Expr::constant(node.output()->type.dtype, 0));
  lowering.define(node.output(), root(lowering.reduce(ReduceKind::sum, power(x, attrs.p)), attrs.p));
}

/// Opens the stage of a global pool; the operand at [n, c, reduce...].
Expr open_global(Lowering& lowering, const Node& node) {
  const Shape& x = node.input(0)->type.shape;
  std::vector<Dim> reduce(x.dims.begin() + 2, x.dims.end());
  lowering.open(Anchor::row, node.output()->type.shape.dims, reduce);
  IndexMap map = IndexMap::identity(2);
  for (size_t s = 0; s < reduce.size(); ++s)
    map.dims.push_back(IndexExpr{{{1, static_cast<int>(x.rank() + s)}}, 0, {}});
  return lowering.pull(node.input(0), map);
}

void lower_global_average(Lowering& lowering, const Node& node) {
  const Expr sum = lowering.reduce(ReduceKind::sum, open_global(lowering, node));
  Dim count = 1;
  for (const Dim& dim : lowering.stage().reduce) count = count * dim;
  lowering.define(node.output(), sum / cast(dim_value(count), sum.dtype()));
}

void lower_global_max(Lowering& lowering, const Node& node) {
  lowering.define(node.output(), lowering.reduce(ReduceKind::max, open_global(lowering, node)));
}

void lower_global_lp(Lowering& lowering, const Node& node) {
  const int64_t p = node.as<GlobalLpPool>().p;
  const Expr x = open_global(lowering, node);
  lowering.define(node.output(), root(lowering.reduce(ReduceKind::sum, power(x, p)), p));
}

constexpr LowerRule kRules[] = {{.op = "max_pool", .anchor = lower_max_pool},
                                {.op = "average_pool", .anchor = lower_average_pool},
                                {.op = "lp_pool", .anchor = lower_lp_pool},
                                {.op = "global_average_pool", .anchor = lower_global_average},
                                {.op = "global_max_pool", .anchor = lower_global_max},
                                {.op = "global_lp_pool", .anchor = lower_global_lp}};

}  // namespace

std::span<const LowerRule> pool_rules() { return kRules; }

}  // namespace opfuse
