// Lanes of channels stored into dense maps, where each lane is a line of its own: neighbouring pixels are turned in
// registers first.
//
//   points    p: [c0 c1 .. c15]   p + 1: [c0 c1 .. c15]  ...            lanes far apart, points side by side
//   memory    c0: [p p+1 ..]      c1: [p p+1 ..]  ...                   one store for each channel
//
// A scatter takes two cycles for each lane, a square of 16 x 16 turned and stored some 80.
#include "cpu/emit/stage_turned.hpp"

#include <algorithm>

#include "cpu/emit/transpose.hpp"

namespace opfuse::cpu {
namespace {

constexpr size_t kShortestRun = 4;

/// How far one point lies behind another along one axis; nothing where they differ in more.
std::optional<std::pair<size_t, int64_t>> distance(const Env& from, const Env& to) {
  if (to.width != from.width || to.mask != from.mask || to.block != from.block) return std::nullopt;
  std::optional<std::pair<size_t, int64_t>> found;
  for (size_t a = 0; a < from.axes.size(); ++a) {
    const AxisValue &x = from.axes[a], &y = to.axes[a];
    if (x.base != y.base || x.lanes != y.lanes || x.multiple != y.multiple) return std::nullopt;
    if (x.plus == y.plus) continue;
    if (found) return std::nullopt;
    found = {a, y.plus - x.plus};
  }
  return found;
}

/// Elements between neighbours along an axis that stands alone in dimensions without blocks; nothing elsewhere.
std::optional<int64_t> dense_step(const Operand& operand, const IndexMap& map, size_t axis) {
  std::optional<int64_t> step;
  if (!operand.layout.blocks.empty()) return std::nullopt;
  for (size_t d = 0; d < map.dims.size(); ++d)
    for (const IndexTerm& t : map.dims[d].terms) {
      if (t.axis != static_cast<int>(axis)) continue;
      const auto& order = operand.layout.order;
      const auto at = std::find(order.begin(), order.end(), static_cast<int>(d)) - order.begin();
      const auto stride = operand.strides[static_cast<size_t>(at)].constant(), coef = t.coef.constant();
      if (step || !stride || !coef || !(t.div == Dim(1)) || !(t.mod == Dim(0))) return std::nullopt;
      step = *stride * *coef;
    }
  return step;
}

std::optional<size_t> lane_axis(const Env& env) {
  std::optional<size_t> found;
  for (size_t a = 0; a < env.axes.size(); ++a) {
    if (!env.axes[a].lanes) continue;
    if (found) return std::nullopt;
    found = a;
  }
  return found;
}

/// Which lanes exist; nothing where that is known only when the kernel runs.
std::optional<std::vector<bool>> lanes_inside(Value* mask, int width) {
  std::vector<bool> inside(static_cast<size_t>(width), true);
  if (!mask) return inside;
  const auto* known = llvm::dyn_cast<llvm::Constant>(mask);
  for (unsigned l = 0; l < inside.size(); ++l) {
    const auto* bit = known ? llvm::dyn_cast_or_null<llvm::ConstantInt>(known->getAggregateElement(l)) : nullptr;
    if (!bit) return std::nullopt;
    inside[l] = bit->isOne();
  }
  return inside;
}

}  // namespace

/// How many points from `first` on follow each other along `axis`, at most as many as a vector has lanes.
static size_t length_of_run(const std::vector<StageEmitter::Point>& points, size_t first, size_t axis) {
  const Env& start = points[first].env;
  size_t length = 1;
  while (first + length < points.size() && length < static_cast<size_t>(start.width) &&
         distance(start, points[first + length].env) == std::pair(axis, static_cast<int64_t>(length)))
    ++length;
  return length;
}

size_t store_turned(StageEmitter& s, const std::vector<StageEmitter::Point>& points, size_t first,
                    const std::function<Value*(const StageEmitter::Point&)>& value_of) {
  Kernel& k = s.k;
  const std::vector<Operand>& outputs = s.outputs;
  if (outputs.size() != 1 || !outputs[0].base || byte_size(outputs[0].dtype) != 4 || s.clips()) return 0;
  if (first + kShortestRun > points.size()) return 0;
  const Env& start = points[first].env;
  const auto along = distance(start, points[first + 1].env);
  const auto across = lane_axis(start);
  if (!along || !across || start.width < 4 || start.block > 1) return 0;
  const IndexMap& map = s.stage.outputs[0].map;
  const auto far = dense_step(outputs[0], map, *across);
  if (dense_step(outputs[0], map, along->first) != 1 || !far || *far <= 1) return 0;
  const auto inside = lanes_inside(start.mask, start.width);
  const size_t length = length_of_run(points, first, along->first), width = static_cast<size_t>(start.width);
  const bool whole = length == width;  // a part of a vector is stored under a mask, from AVX on
  if (!inside || length < kShortestRun || (!whole && (width < 8 || 2 * length < width))) return 0;

  std::vector<Value*> columns;
  for (size_t i = 0; i < length; ++i) columns.push_back(value_of(points[first + i]));
  columns.resize(width, llvm::PoisonValue::get(columns[0]->getType()));
  const std::vector<Value*> rows = transpose(k, std::move(columns));
  Env row = start;
  std::vector<llvm::Constant*> bits;
  for (size_t l = 0; l < width; ++l) bits.push_back(k.b.getInt1(l < length));
  row.mask = whole ? nullptr : llvm::ConstantVector::get(bits);
  const AxisValue& pixel = start.axes[along->first];  // lanes begin at a base: nothing is added to it
  row.axes[along->first] = {k.add(pixel.base, k.i64(pixel.plus)), true, 1};
  row.axes[*across].lanes = false;
  for (size_t l = 0; l < width; ++l) {
    if (!(*inside)[l]) continue;
    row.axes[*across].plus = start.axes[*across].plus + static_cast<int64_t>(l);
    store(k, outputs[0], address_of(k, outputs[0], map, row, nullptr), row, rows[l]);
  }
  return length;
}

}  // namespace opfuse::cpu
