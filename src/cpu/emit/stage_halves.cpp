// bf16 results of a pixel: two vectors of sums are rounded and stored as one.
//
//   points      [lanes] [lanes]        channels behind each other, in memory too
//   memory      [  2 * lanes  ]
#include <algorithm>

#include "cpu/emit/math/half_float.hpp"
#include "cpu/emit/stage.hpp"

namespace opfuse::cpu {
namespace {

/// What is rounded when it is stored anyway.
const Expr& before_rounding(const Expr& value) {
  const bool rounds = value.op() == ExprOp::cast && value.dtype() == DType::bf16;
  return rounds && value.args()[0].dtype() == DType::f32 ? value.args()[0] : value;
}

}  // namespace

bool StageEmitter::joins_lanes(size_t output, const Env& env) const {
  const auto axis = std::find_if(env.axes.begin(), env.axes.end(), [](const AxisValue& a) { return a.lanes; });
  if (axis == env.axes.end() || !outputs[output].base || outputs[output].dtype != DType::bf16 || tables_[output])
    return false;
  const IndexMap& map = stage.outputs[output].map;
  const auto number = static_cast<int>(axis - env.axes.begin());
  return lane_shape(outputs[output], map, number, 2 * env.width).step == 1;
}

/// How many points from `first` on were stored; 0: none.
size_t StageEmitter::store_halves(const std::vector<Point>& points, size_t first) {
  if (!points[first].pairs || !k.rounds_halves || clips()) return 0;
  const Point &low = points[first], &high = points[first + 1];
  if (low.env.mask || high.env.mask || low.env.width != lanes_of(k.target)) return 0;
  std::vector<bool> joined;
  for (size_t i = 0; i < outputs.size(); ++i) joined.push_back(joins_lanes(i, low.env));
  if (std::find(joined.begin(), joined.end(), true) == joined.end()) return 0;
  const auto values_of = [&](const Point& p) {
    ExprEmitter point = at(p.env, p.results);
    std::vector<Value*> values;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Expr& value = stage.outputs[i].value;
      values.push_back(joined[i] ? k.splat(point.emit(before_rounding(value), DType::f32), p.env.width)
                                 : value_at(i, point));
    }
    return values;
  };
  const std::vector<Value*> lows = values_of(low), highs = values_of(high);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].base) continue;
    const IndexMap& map = stage.outputs[i].map;
    const Address to = address_of(k, outputs[i], map, low.env, nullptr);
    if (!joined[i]) {
      store(k, outputs[i], to, low.env, lows[i]);
      store(k, outputs[i], address_of(k, outputs[i], map, high.env, nullptr), high.env, highs[i]);
      continue;
    }
    Value* place = k.element(outputs[i].base, DType::bf16, k.add(to.scalar, k.i64(to.constant)));
    k.b.CreateAlignedStore(narrow_pair(k, lows[i], highs[i]), place, llvm::Align(2));
  }
  return 2;
}

}  // namespace opfuse::cpu
