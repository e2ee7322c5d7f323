// Codes of four neighbouring pixels are made together: vectors of sums have four times the bytes of their codes.
//
//   points      p     p + 1   p + 2   p + 3        the same channels, one axis moves
//   memory    [lanes][lanes] [lanes] [lanes]       behind each other: one store; at equal distances: four
#include <algorithm>

#include "cpu/emit/math/quantise.hpp"
#include "cpu/emit/stage.hpp"

namespace opfuse::cpu {
namespace {

bool same_place(const AxisValue& a, const AxisValue& b) {
  return a.base == b.base && a.lanes == b.lanes && a.multiple == b.multiple;
}

/// The axis along which the points from `first` on follow each other.
std::optional<size_t> moving_axis(const std::vector<StageEmitter::Point>& points, size_t first) {
  if (first + kVectorsOfCodes > points.size()) return std::nullopt;
  const Env& start = points[first].env;
  std::optional<size_t> moving;
  for (size_t i = 1; i < kVectorsOfCodes; ++i) {
    const Env& at = points[first + i].env;
    if (at.width != start.width || at.mask != start.mask || at.block != start.block) return std::nullopt;
    for (size_t a = 0; a < start.axes.size(); ++a) {
      if (!same_place(start.axes[a], at.axes[a])) return std::nullopt;
      const int64_t step = at.axes[a].plus - start.axes[a].plus;
      if (step == 0) continue;
      if (step != static_cast<int64_t>(i) || (moving && *moving != a)) return std::nullopt;
      moving = a;
    }
  }
  return moving;
}

/// Elements between neighbours along an axis that stands alone in a dimension without blocks; nothing elsewhere.
std::optional<int64_t> plain_step(const Operand& operand, const IndexMap& map, int axis) {
  std::optional<int64_t> step;
  for (size_t d = 0; d < map.dims.size(); ++d)
    for (const IndexTerm& t : map.dims[d].terms) {
      if (t.axis != axis) continue;
      const auto& order = operand.layout.order;
      const auto at = std::find(order.begin(), order.end(), static_cast<int>(d)) - order.begin();
      const auto stride = operand.strides[static_cast<size_t>(at)].constant(), coef = t.coef.constant();
      const auto& blocks = operand.layout.blocks;
      const bool blocked =
          std::any_of(blocks.begin(), blocks.end(), [&](const Block& b) { return b.axis == static_cast<int>(d); });
      if (step || blocked || !stride || !coef || !(t.div == Dim(1)) || !(t.mod == Dim(0))) return std::nullopt;
      step = *stride * *coef;
    }
  return step;
}

/// The lanes of each of the vectors.
Value* repeated(Kernel& k, Value* mask, int lanes) {
  std::vector<int> order;
  for (int i = 0; i < lanes * static_cast<int>(kVectorsOfCodes); ++i) order.push_back(i % lanes);
  return k.b.CreateShuffleVector(mask, order);
}

}  // namespace

/// How many points from `first` on were stored; 0: none.
size_t StageEmitter::store_codes(const std::vector<Point>& points, size_t first) {
  const auto axis = moving_axis(points, first);
  if (!axis || clips() || outputs.size() != 1 || !outputs[0].base) return 0;
  const auto& table = tables_[0];
  const auto form = code_form(table ? table->code : stage.outputs[0].value);
  const Env& env = points[first].env;
  const IndexMap& map = stage.outputs[0].map;
  const auto step = plain_step(outputs[0], map, static_cast<int>(*axis));
  if (!form || !step || env.width != lanes_of(k.target) || (!table && form->dtype != outputs[0].dtype)) return 0;
  const Address to = address_of(k, outputs[0], map, env, nullptr);
  if (to.step != 1 || (env.mask && !to.padded)) return 0;
  std::array<Value*, kVectorsOfCodes> x{};
  for (size_t i = 0; i < x.size(); ++i) {
    ExprEmitter point = at(points[first + i].env, points[first + i].results);
    x[i] = k.splat(point.emit(form->x, DType::f32), env.width);
  }
  Value* codes = emit_codes(k, x, *form);
  if (table) codes = look_up(k, *table, codes);
  if (env.mask)
    codes = k.b.CreateSelect(repeated(k, k.splat(env.mask, env.width), env.width), codes, k.zero(codes->getType()));
  const auto place = [&](int64_t pixel) {
    Value* offset = k.add(to.scalar, k.i64(to.constant + pixel * *step));
    return k.element(outputs[0].base, outputs[0].dtype, offset);
  };
  if (*step == env.width) {
    k.b.CreateAlignedStore(codes, place(0), llvm::Align(1));
    return kVectorsOfCodes;
  }
  for (int i = 0; i < static_cast<int>(kVectorsOfCodes); ++i) {
    std::vector<int> lanes;
    for (int l = 0; l < env.width; ++l) lanes.push_back(i * env.width + l);
    k.b.CreateAlignedStore(k.b.CreateShuffleVector(codes, lanes), place(i), llvm::Align(1));
  }
  return kVectorsOfCodes;
}

}  // namespace opfuse::cpu
