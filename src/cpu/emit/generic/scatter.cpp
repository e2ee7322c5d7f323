// Updates at computed indices, in order, without two parts that store to one element:
//
//   for lines of this part:          axes that are coordinates of the result as they are
//     for ordered axes:              the order in which the last update wins, or sums are rounded
//       for lanes of this part:      along the line axis that is contiguous in the result
//         if inside: result[index] (op)= update
//
// Where no axis is a line (tuples of all coordinates), parts share the result instead: each looks at all updates and
// takes those of its range of the first computed dimension.
#include <algorithm>

#include "base/fail.hpp"
#include "cpu/emit/emitters.hpp"
#include "cpu/emit/nest.hpp"
#include "cpu/nest_parts.hpp"
#include "kernel/scatter_view.hpp"
#include "region/dependence.hpp"

namespace opfuse::cpu {
namespace {

constexpr int64_t kUpdateGrain = 1 << 14;  // updates that make a part worth its dispatch
constexpr int64_t kMostScans = 4;          // parts that look at all updates

class ScatterEmitter {
 public:
  explicit ScatterEmitter(Kernel& k) : k_(k), s_(k, 0), view_(view_scatter(s_.stage)) {
    OPFUSE_CHECK(s_.stage.outputs.size() == 1 && s_.outputs[0].layout.blocks.empty(), "a scatter into blocks");
    choose_lanes();
    for (int axis : view_.lines)
      if (axis != lane_axis_) lines_.push_back(axis);
  }

  void emit() {
    cut_parts();
    Value* piece = k_.div(k_.part, k_.dim(ranges_));
    Value* range = k_.rem(k_.part, k_.dim(ranges_));
    trips_begin_ = share(trips(), range, ranges_);
    trips_end_ = share(trips(), k_.add(range, k_.i64(1)), ranges_);
    Dim lines = 1;
    for (int axis : lines_) lines = lines * extent(axis);
    k_.loop(share(lines, piece, pieces_), share(lines, k_.add(piece, k_.i64(1)), pieces_), 1, [&](Value* line) {
      Env env = s_.fresh_env(1);
      Value* rest = line;
      for (size_t i = lines_.size(); i-- > 0;) {
        Value* count = k_.dim(extent(lines_[i]));
        env.axes[static_cast<size_t>(lines_[i])] = {i == 0 ? rest : k_.rem(rest, count), false, 1};
        if (i > 0) rest = k_.div(rest, count);
      }
      ordered(0, env);
    });
  }

 private:
  Kernel& k_;
  StageEmitter s_;
  ScatterView view_;
  int lane_axis_ = -1;
  int width_ = 1;
  std::vector<int> lines_;       ///< but the lanes' axis
  Dim pieces_ = 1, ranges_ = 1;  ///< parts: pieces of the lines times ranges of lanes (or of the result)
  bool shares_result_ = false;   ///< ranges_ are those of the result
  Value *trips_begin_ = nullptr, *trips_end_ = nullptr;

  const StageOutput& output() const { return s_.stage.outputs[0]; }
  const Dim& extent(int axis) const { return s_.stage.domain[static_cast<size_t>(axis)]; }
  Dim trips() const { return lane_axis_ < 0 ? Dim(1) : ceil_div(extent(lane_axis_), width_); }
  Value* share(const Dim& count, Value* piece, const Dim& pieces) {
    return k_.div(k_.mul(k_.dim(count), piece), k_.dim(pieces));
  }

  /// Lanes of neighbours in the result that all go where one index says.
  void choose_lanes() {
    for (int axis : view_.lines) {
      const auto known = extent(axis).constant();
      if (known && *known < 2) continue;
      IndexMap still = output().map;
      bool depends = false;
      for (IndexExpr& e : still.dims) {
        if (e.dynamic) depends |= axes_of(s_.stage, e.dynamic).contains(axis);
        e.dynamic = {};
      }
      int width = lanes_of(k_.target);
      while (known && width > 2 && width / 2 >= *known) width /= 2;
      if (depends || lane_shape(s_.outputs[0], still, axis, width).step != 1) continue;
      lane_axis_ = axis;
      width_ = width;
    }
  }

  void cut_parts() {
    Dim work = 1, lines = 1;
    for (const Dim& d : s_.stage.domain) work = work * d;
    for (int axis : lines_) lines = lines * extent(axis);
    const Dim wanted = max(Dim(1), min(Dim(kMostNestParts), floor_div(work, 2 * kUpdateGrain) * Dim(2)));
    shares_result_ = lines_.empty() && lane_axis_ < 0 && !view_.dynamic.empty();
    pieces_ = max(Dim(1), min(lines, wanted));
    ranges_ = shares_result_ ? min(wanted, Dim(kMostScans)) : max(Dim(1), min(trips(), floor_div(wanted, pieces_)));
    k_.parts = pieces_ * ranges_;
  }

  void ordered(size_t index, const Env& env) {
    if (index == view_.ordered.size()) return lanes(env);
    const int axis = view_.ordered[index];
    k_.loop(k_.i64(0), k_.dim(extent(axis)), 1, [&](Value* i) {
      Env inner = env;
      inner.axes[static_cast<size_t>(axis)] = {i, false, 1};
      ordered(index + 1, inner);
    });
  }

  void lanes(const Env& env) {
    if (lane_axis_ < 0) return update(env);
    const auto at = [&](Value* trip) {
      Env inner = env;
      inner.width = width_;
      inner.axes[static_cast<size_t>(lane_axis_)] = {k_.mul(trip, k_.i64(width_)), true, width_};
      return inner;
    };
    Value* whole = k_.dim(floor_div(extent(lane_axis_), width_));
    k_.loop(trips_begin_, k_.min(trips_end_, whole), 1, [&](Value* trip) { update(at(trip)); });
    if (const auto known = extent(lane_axis_).constant(); known && *known % width_ == 0) return;
    k_.loop(k_.max(trips_begin_, whole), trips_end_, 1, [&](Value* trip) {
      Env inner = at(trip);
      Value* left = k_.sub(k_.dim(extent(lane_axis_)), k_.mul(trip, k_.i64(width_)));
      inner.mask = k_.b.CreateICmpSLT(k_.iota(width_), k_.splat(left, width_));
      update(inner);
    });
  }

  void update(Env env) {
    const Operand& result = s_.outputs[0];
    const EmitIndex index = [&](const Expr& e) { return s_.at(env).emit(e, DType::i64); };
    Value* taken = inside(k_, result, output().map, env, index);
    if (shares_result_) taken = k_.b.CreateAnd(taken, is_mine(index));
    if (width_of(taken) > 1) {
      env.mask = env.mask ? k_.b.CreateAnd(env.mask, taken) : taken;
      taken = k_.b.getTrue();
    }
    k_.branch(taken, [&] {
      Value* value = k_.splat(s_.at(env).emit(output().value, output().dtype), env.width);
      const Address to = address_of(k_, result, output().map, env, index);
      if (output().combine) {
        Value* before = load(k_, result, to, env, nullptr);
        value = combine(k_, *output().combine, output().dtype, before, value);
      }
      store(k_, result, to, env, value);
    });
  }

  /// The update is for this part's range of the first computed dimension.
  Value* is_mine(const EmitIndex& index) {
    const auto dim = static_cast<size_t>(view_.dynamic[0]);
    const Dim& size = s_.outputs[0].shape[dim];
    Value* at = index(output().map.dims[dim].dynamic);
    Value* begin = share(size, k_.part, ranges_);
    Value* end = share(size, k_.add(k_.part, k_.i64(1)), ranges_);
    return k_.b.CreateAnd(k_.b.CreateICmpSGE(at, begin), k_.b.CreateICmpSLT(at, end));
  }
};

}  // namespace

void emit_scatter(Kernel& k) { ScatterEmitter(k).emit(); }

}  // namespace opfuse::cpu
