// Maps that turn axes: some operand lies along an axis `across` while results lie along `along` (a transpose, channels
// out of blocks or into them). A square of both at a time, as many rows as a vector has lanes:
//
//   for the other axes, squares of across and along:
//     turned operands: vectors along `across`, one per element along `along`; transposed in registers
//     for rows of the square: the expression, its lanes along `along`; one store
//
// Every cache line is read and written once, where a gather reads a line per lane.
#include "cpu/emit/generic/turned.hpp"

#include <algorithm>

#include "cpu/emit/nest.hpp"
#include "cpu/emit/transpose.hpp"
#include "kernel/reads.hpp"
#include "region/dependence.hpp"

namespace opfuse::cpu {
namespace {

constexpr size_t kMostTurned = 2;  // operands whose squares share the registers
constexpr int64_t kShortest = 4;   // elements across, below which gathers are as good

bool computes_index(const Read& read) {
  return std::any_of(read.map.dims.begin(), read.map.dims.end(),
                     [](const IndexExpr& e) { return static_cast<bool>(e.dynamic); });
}

class TurnedEmitter {
 public:
  TurnedEmitter(Kernel& k, StageEmitter& s, const Turned& turned) : k_(k), s_(s), t_(turned) {}

  void emit(const std::vector<int>& order, const Dim& work) {
    std::vector<Level> levels;
    for (int axis : order)
      if (axis != t_.across && axis != t_.along) levels.push_back({axis, false, extent(axis), 1, 1, false});
    levels.push_back({t_.across, false, ceil_div(extent(t_.across), t_.width), 1, 1, false});
    levels.push_back({t_.along, true, extent(t_.along), t_.block, 1, false});
    Env first = s_.fresh_env(t_.width);
    first.block = t_.block;
    Nest(k_, std::move(levels), t_.width).emit_parts(first, work, [&](const Env& env) { square(env); });
  }

 private:
  Kernel& k_;
  StageEmitter& s_;
  const Turned& t_;

  const Dim& extent(int axis) const { return s_.stage.domain[static_cast<size_t>(axis)]; }
  bool whole(int axis) const {
    const auto known = extent(axis).constant();
    return known && *known % t_.width == 0;
  }

  void square(Env env) {
    Value* first = k_.mul(env.axes[static_cast<size_t>(t_.across)].base, k_.i64(t_.width));
    std::map<int, std::vector<Value*>> rows;
    for (int read : t_.reads) rows[read] = turned(env, read, first);
    for (int64_t i = 0; i < t_.width; ++i) {
      Env point = env;
      point.axes[static_cast<size_t>(t_.across)] = {first, false, t_.width, i};
      std::map<int, Value*> given;
      for (const auto& [read, vectors] : rows) given[read] = vectors[static_cast<size_t>(i)];
      if (whole(t_.across) || i == 0) {
        s_.store_given(point, given);
        continue;
      }
      Value* inside = k_.b.CreateICmpSLT(k_.add(first, k_.i64(i)), k_.dim(extent(t_.across)));
      k_.branch(inside, [&] { s_.store_given(point, given); });
    }
  }

  /// The operand's elements by row: lanes along `along`.
  std::vector<Value*> turned(const Env& env, int read, Value* first) {
    const Operand& operand = s_.reads[static_cast<size_t>(read)];
    const IndexMap& map = s_.stage.reads[static_cast<size_t>(read)].map;
    Env at = env;
    at.axes[static_cast<size_t>(t_.across)] = {first, true, t_.width};
    at.mask = nullptr;
    at.block = 1;
    if (!whole(t_.across)) {
      Value* left = k_.splat(k_.sub(k_.dim(extent(t_.across)), first), t_.width);
      at.mask = k_.b.CreateICmpSLT(k_.iota(t_.width), left);
    }
    Value* base = env.axes[static_cast<size_t>(t_.along)].base;
    Value* last = k_.sub(k_.dim(extent(t_.along)), k_.i64(1));
    std::vector<Value*> vectors;
    for (int64_t j = 0; j < t_.width; ++j) {
      // behind the last element it is read again: no lane of a result takes it
      AxisValue& along = at.axes[static_cast<size_t>(t_.along)];
      if (env.mask || !whole(t_.along))
        along = {k_.min(k_.add(base, k_.i64(j)), last), false, 1};
      else
        along = {base, false, t_.width, j};
      vectors.push_back(k_.splat(load(k_, operand, address_of(k_, operand, map, at, nullptr), at, nullptr), t_.width));
    }
    return transpose(k_, std::move(vectors));
  }
};

/// Reads that jump along `along` and lie together along `across`.
std::vector<int> turned_reads(const StageEmitter& s, int along, int across, int width) {
  std::vector<int> turned;
  const std::set<int> guarded = guarded_reads(s.stage);
  for (size_t r = 0; r < s.reads.size(); ++r) {
    const Read& read = s.stage.reads[r];
    const bool plain =
        !guarded.contains(static_cast<int>(r)) && !computes_index(read) && byte_size(s.reads[r].dtype) == 4;
    const auto here = lane_shape(s.reads[r], read.map, along, width);
    if (plain && here.step != 0 && here.step != 1 && lane_shape(s.reads[r], read.map, across, width).step == 1)
      turned.push_back(static_cast<int>(r));
  }
  return turned;
}

}  // namespace

std::optional<Turned> find_turned(const StageEmitter& s, int along, int64_t block, int width) {
  if (along < 0 || width < 4 || !s.stage.reductions.empty() || s.clips()) return std::nullopt;
  for (size_t i = 0; i < s.outputs.size(); ++i)
    if (lane_shape(s.outputs[i], s.stage.outputs[i].map, along, width).step != 1) return std::nullopt;
  Turned best;
  for (int axis = 0; axis < static_cast<int>(s.stage.domain.size()); ++axis) {
    if (axis == along || s.stage.domain[static_cast<size_t>(axis)].constant().value_or(kShortest) < kShortest) continue;
    std::vector<int> reads = turned_reads(s, along, axis, width);
    if (reads.size() <= best.reads.size() || reads.size() > kMostTurned) continue;
    best = {along, axis, block, width, std::move(reads)};
  }
  return best.reads.empty() ? std::nullopt : std::optional(best);
}

void emit_turned(Kernel& k, StageEmitter& s, const Turned& turned, const std::vector<int>& order, const Dim& work) {
  TurnedEmitter(k, s, turned).emit(order, work);
}

}  // namespace opfuse::cpu
