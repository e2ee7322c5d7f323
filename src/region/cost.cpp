// What a region costs: FLOP on useful taps and bytes of what it reads and writes of its parameters, each element once.
//
// A reduction's taps are domain x reduce points, except those where the read that guards a select
// (padding) is outside its tensor. Taps inside are counted exactly: the guarded read's dimensions use
// disjoint axes, so the count is the product over its dimensions of the points inside, times the
// extents of the axes it does not mention. Domain axes that the reduction does not mention (the
// elements of a softmax row) share its work.
#include <algorithm>
#include <optional>

#include "base/fail.hpp"
#include "region/dependence.hpp"
#include "region/read_shape.hpp"
#include "region/region.hpp"
#include "region/traffic.hpp"

namespace opfuse {
namespace {

bool is_arithmetic(ExprOp op) {
  switch (op) {
    case ExprOp::constant:
    case ExprOp::read:
    case ExprOp::in_bounds:
    case ExprOp::coord:
    case ExprOp::result:
    case ExprOp::extent:
    case ExprOp::select:
    case ExprOp::cast:
    case ExprOp::bit_cast:
      return false;
    default:
      return true;
  }
}

/// An operation on real numbers (a comparison of reals too); index arithmetic is not work.
bool is_operation(const Expr& e) { return is_arithmetic(e.op()) && !e.args().empty() && is_float(e.args()[0].dtype()); }

/// The product of two codes, which a sum of i32 adds up.
bool is_product_of_codes(const Expr& e) { return e.op() == ExprOp::mul && e.dtype() == DType::i32; }

double operations(const Expr& expr) {
  double count = 0;
  expr.visit([&](const Expr& e) { count += is_operation(e); });
  return count;
}

class StageCost {
 public:
  StageCost(const Stage& stage, const Region& region, const SymbolValues& symbols)
      : stage_(stage), region_(region), symbols_(symbols) {
    for (const Dim& dim : stage.domain) extents_.push_back(dim.evaluate(symbols));
    for (const Dim& dim : stage.reduce) extents_.push_back(dim.evaluate(symbols));
  }

  double flops() {
    double total = 0;
    for (const Reduction& reduction : stage_.reductions) total += taps(reduction.value) + prologue(reduction.value);
    double points = 1;
    for (size_t axis = 0; axis < stage_.domain.size(); ++axis) points *= static_cast<double>(extents_[axis]);
    for (size_t i = 0; i < stage_.outputs.size(); ++i)
      if (!computed_before(i)) total += points * operations(stage_.outputs[i].value);
    return total;
  }

 private:
  const Stage& stage_;
  const Region& region_;
  const SymbolValues& symbols_;
  std::vector<int64_t> extents_;

  /// A value that is stored and kept for a later stage.
  bool computed_before(size_t output) const {
    for (size_t i = 0; i < output; ++i)
      if (stage_.outputs[i].value == stage_.outputs[output].value) return true;
    return false;
  }

  /// Operations of a reduction's value: once per element where they depend on fewer axes than it does (a gate of the
  /// data in a contraction).
  double prologue(const Expr& value) {
    const std::set<int> all = axes_of(stage_, value);
    const double each = taps(value);
    double total = 0;
    value.visit([&](const Expr& e) {
      if (!is_operation(e) && !is_product_of_codes(e)) return;
      const std::set<int> axes = axes_of(stage_, e);
      double count = axes == all ? each : 1;
      if (!(axes == all))
        for (int axis : axes) count *= static_cast<double>(extents_[static_cast<size_t>(axis)]);
      total += count;
    });
    return total;
  }

  double taps(const Expr& value) {
    std::vector<char> used(extents_.size(), 0);
    for (size_t axis = stage_.domain.size(); axis < extents_.size(); ++axis) used[axis] = 1;
    int guard = -1;
    for (int axis : axes_of(stage_, value)) used[axis] = 1;
    value.visit([&](const Expr& e) {
      if (e.op() == ExprOp::in_bounds) guard = e.index();
    });
    double count = 1;
    if (guard >= 0) count = points_inside(stage_.reads[guard], used);
    for (size_t axis = 0; axis < extents_.size(); ++axis)
      if (used[axis]) count *= static_cast<double>(extents_[axis]);
    return count;
  }

  /// Points inside the tensor over the axes of each dimension; those axes are cleared from `used`.
  double points_inside(const Read& read, std::vector<char>& used) {
    double count = 1;
    const Shape& shape = shape_read_by(region_, read);
    std::vector<char> seen(extents_.size(), 0);
    for (size_t d = 0; d < read.map.dims.size(); ++d) {
      const IndexExpr& dim = read.map.dims[d];
      std::vector<int> axes;
      bool shared = static_cast<bool>(dim.dynamic);
      for (const IndexTerm& term : dim.terms) {
        shared |= seen[term.axis] != 0;
        axes.push_back(term.axis);
      }
      if (shared) continue;  // an axis of two dimensions: counted as inside
      std::sort(axes.begin(), axes.end());
      axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
      for (int axis : axes) seen[axis] = 1, used[axis] = 0;
      count *= count_inside(dim, axes, shape[d].evaluate(symbols_));
    }
    return count;
  }

  double count_inside(const IndexExpr& dim, const std::vector<int>& axes, int64_t extent) {
    std::vector<int64_t> at(extents_.size(), 0);
    double points = 1;
    for (int axis : axes) points *= static_cast<double>(extents_[axis]);
    if (points == 0 || points > 1e7) return points;
    double inside = 0;
    for (int64_t i = 0; i < static_cast<int64_t>(points); ++i) {
      int64_t rest = i, index = dim.offset.evaluate(symbols_);
      for (int axis : axes) {
        at[axis] = rest % extents_[axis];
        rest /= extents_[axis];
      }
      for (const IndexTerm& term : dim.terms) {
        int64_t c = at[term.axis] / term.div.evaluate(symbols_);
        if (const int64_t m = term.mod.evaluate(symbols_); m != 0) c %= m;
        index += term.coef.evaluate(symbols_) * c;
      }
      inside += index >= 0 && index < extent ? 1 : 0;
    }
    return inside;
  }
};

/// Of a scatter, the elements it stores; the result is not stored as a whole then.
double scattered_bytes(const Stage& stage, const SymbolValues& symbols, std::vector<char>& whole) {
  if (stage.anchor != Anchor::scatter) return 0;
  double points = 1, bytes = 0;
  for (const Dim& dim : stage.domain) points *= static_cast<double>(dim.evaluate(symbols));
  for (const StageOutput& output : stage.outputs) {
    bytes += points * static_cast<double>(byte_size(output.dtype)) * (output.combine ? 2 : 1);
    whole[static_cast<size_t>(output.param)] = 0;
  }
  return bytes;
}

/// Points of a read: of a slice or of rows that are looked up less than the tensor has.
double points_of(const Stage& stage, const IndexMap& map, const SymbolValues& symbols) {
  std::set<int> axes = axes_of(map);
  for (const IndexExpr& dim : map.dims)
    if (dim.dynamic) axes.merge(axes_of(stage, dim.dynamic));
  double points = 1;
  for (const int axis : axes) {
    const auto at = static_cast<size_t>(axis);
    const Dim& extent = at < stage.domain.size() ? stage.domain[at] : stage.reduce[at - stage.domain.size()];
    points *= static_cast<double>(extent.evaluate(symbols));
  }
  return points;
}

/// By operand, the elements that are read, each read by itself; what several of them share makes no more than all.
std::vector<double> points_read(const Region& region, const SymbolValues& symbols) {
  std::vector<double> points(region.params.size(), 0);
  for (const Stage& stage : region.stages)
    for (const Read& read : stage.reads)
      if (read.stage < 0) points[static_cast<size_t>(read.index)] += points_of(stage, read.map, symbols);
  return points;
}

}  // namespace

RegionCost cost_of(const Region& region, const SymbolValues& symbols) {
  RegionCost cost = traffic_of(region, symbols);
  for (const Stage& stage : region.stages) cost.flops += StageCost(stage, region, symbols).flops();
  return cost;
}

RegionCost traffic_of(const Region& region, const SymbolValues& symbols) {
  RegionCost cost;
  std::vector<char> whole(region.params.size(), 1);
  for (const Stage& stage : region.stages) cost.bytes_written += scattered_bytes(stage, symbols, whole);
  const std::vector<double> read = points_read(region, symbols);
  for (size_t i = 0; i < region.params.size(); ++i) {
    const Param& param = region.params[i];
    if (!whole[i]) continue;
    const auto each = static_cast<double>(byte_size(param.type.dtype));
    double elements = 1;
    for (int64_t size : param.type.shape.evaluate(symbols)) elements *= static_cast<double>(size);
    if (param.role == ParamRole::output)
      cost.bytes_written += each * elements;
    else
      cost.bytes_read += each * std::min(elements, read[i]);
  }
  return cost;
}

}  // namespace opfuse
