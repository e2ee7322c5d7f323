// Maps that turn axes: some operand lies along an axis `across` while results lie along `along` (a transpose, channels
// out of blocks or into them). A square of both at a time, as many rows as a vector has lanes:
//
//   for the other axes, squares of across and along:
//     turned operands: vectors along `across`, one per element along `along`; transposed in registers
//     for rows of the square: the expression, its lanes along `along`; one store
//
// Every cache line is read and written once, where a gather reads a line per lane. Where an extent isn't a multiple
// of the lane count, the last square begins early enough to end with the axis: some rows and lanes are computed twice,
// and loads and stores need no mask. Squares keep their masks where a result may lie in an operand's memory, and along
// axes that lie in blocks or are split by an index.
#include "cpu/emit/generic/turned.hpp"

#include <algorithm>

#include "cpu/emit/generic/segments.hpp"
#include "cpu/emit/nest.hpp"
#include "cpu/emit/take_turns.hpp"
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

/// Along `axis` coordinates grow by a constant from any position on, and neighbours lie in no blocks.
bool runs_evenly(const Operand& operand, const IndexMap& map, int axis) {
  return operand.layout.blocks.empty() && std::all_of(map.dims.begin(), map.dims.end(), [&](const IndexExpr& e) {
           return !e.dynamic && std::all_of(e.terms.begin(), e.terms.end(), [&](const IndexTerm& t) {
             return t.axis != axis || (t.div == Dim(1) && t.mod == Dim(0));
           });
         });
}

class TurnedEmitter {
 public:
  TurnedEmitter(Kernel& k, StageEmitter& s, const Turned& turned)
      : k_(k), s_(s), t_(turned), ends_along_(may_end_with(turned.along)), ends_across_(may_end_with(turned.across)) {}

  void emit(const std::vector<int>& order, const Dim& work) {
    std::vector<Level> levels;
    for (int axis : order)
      if (axis != t_.across && axis != t_.along) levels.push_back({axis, false, extent(axis), 1, 1, false});
    levels.push_back({t_.across, false, ceil_div(extent(t_.across), t_.width), 1, 1, false});
    const Dim squares = ceil_div(extent(t_.along), t_.width);
    levels.push_back({t_.along, !ends_along_, ends_along_ ? squares : extent(t_.along), t_.block, 1, false});
    Env first = s_.fresh_env(t_.width);
    first.block = t_.block;
    Nest(k_, std::move(levels), t_.width).emit_parts(first, work, [&](const Env& env) {
      Env at = env;
      if (ends_along_) at.axes[static_cast<size_t>(t_.along)] = {first_of_square(env, t_.along, true), true, 1};
      square(at);
    });
  }

 private:
  Kernel& k_;
  StageEmitter& s_;
  const Turned& t_;
  const bool ends_along_, ends_across_;  ///< the last square of the axis ends with it

  const Dim& extent(int axis) const { return s_.stage.domain[static_cast<size_t>(axis)]; }
  bool whole(int axis) const {
    const auto known = extent(axis).constant();
    return known && *known % t_.width == 0;
  }

  bool may_end_with(int axis) const {
    const auto known = extent(axis).constant();
    if (!known || *known < t_.width || whole(axis) || t_.block > 1) return false;
    const std::vector<StageOutput>& stored = s_.stage.outputs;
    for (size_t o = 0; o < stored.size(); ++o)
      if (!runs_evenly(s_.outputs[o], stored[o].map, axis)) return false;
    for (size_t r = 0; r < s_.reads.size(); ++r) {
      const Read& read = s_.stage.reads[r];
      const bool in_place = std::any_of(stored.begin(), stored.end(), [&](const StageOutput& output) {
        return read.map == output.map && may_share_memory(k_.spec.region, read, output);
      });
      if (in_place || !runs_evenly(s_.reads[r], read.map, axis)) return false;
    }
    return true;
  }

  /// `env` counts squares along `axis`.
  Value* first_of_square(const Env& env, int axis, bool ends) {
    Value* first = k_.mul(env.axes[static_cast<size_t>(axis)].base, k_.i64(t_.width));
    return ends ? k_.min(first, k_.i64(*extent(axis).constant() - t_.width)) : first;
  }

  void square(const Env& env) {
    Value* first = first_of_square(env, t_.across, ends_across_);
    std::map<int, std::vector<Value*>> rows;
    for (int read : t_.reads) rows[read] = turned(env, read, first);
    const auto store_row = [&](size_t i) {
      Env point = env;
      point.axes[static_cast<size_t>(t_.across)] = {first, false, ends_across_ ? 1 : t_.width, static_cast<int64_t>(i)};
      std::map<int, Value*> given;
      for (const auto& [read, vectors] : rows) given[read] = vectors[i];
      s_.store_given(point, given);
    };
    const auto known = extent(t_.across).constant();
    const auto width = static_cast<size_t>(t_.width);
    if (whole(t_.across)) return store_rows(0, width, store_row);
    if (known && *known < t_.width) return store_rows(0, static_cast<size_t>(*known), store_row);
    if (ends_across_) {  // rows of long chains are computed once
      if (!has_long_epilogue(s_.stage)) return store_rows(0, width, store_row);
      Value* last = k_.b.CreateICmpEQ(env.axes[static_cast<size_t>(t_.across)].base, k_.i64(*known / t_.width));
      const size_t rest = static_cast<size_t>(*known) % width;
      return k_.branch(
          last, [&] { store_rows(width - rest, width, store_row); }, [&] { store_rows(0, width, store_row); });
    }
    store_row(0);
    for (size_t i = 1; i < width; ++i) {
      Value* inside = k_.b.CreateICmpSLT(k_.add(first, k_.i64(static_cast<int64_t>(i))), k_.dim(extent(t_.across)));
      k_.branch(inside, [&] { store_row(i); });
    }
  }

  /// Rows from `begin` to `end`; long chains of operations take turns.
  void store_rows(size_t begin, size_t end, const std::function<void(size_t)>& store_row) {
    size_t turns = 1;
    if (has_long_epilogue(s_.stage))
      for (const StageOutput& o : s_.stage.outputs)
        turns = std::max(turns, static_cast<size_t>(vectors_in_turns(o.value, k_.target.vector_registers)));
    for (; begin < end; begin += turns)
      take_turns(k_, std::min(turns, end - begin), [&](size_t i) { store_row(begin + i); });
  }

  /// The operand's elements by row: lanes along `along`.
  std::vector<Value*> turned(const Env& env, int read, Value* first) {
    const Operand& operand = s_.reads[static_cast<size_t>(read)];
    const IndexMap& map = s_.stage.reads[static_cast<size_t>(read)].map;
    const bool all_along = whole(t_.along) || ends_along_, all_across = whole(t_.across) || ends_across_;
    Env at = env;
    at.axes[static_cast<size_t>(t_.across)] = {first, true, ends_across_ ? 1 : t_.width};
    at.mask = nullptr;
    at.block = 1;
    if (!all_across) {
      Value* left = k_.splat(k_.sub(k_.dim(extent(t_.across)), first), t_.width);
      at.mask = k_.b.CreateICmpSLT(k_.iota(t_.width), left);
    }
    const AxisValue start = env.axes[static_cast<size_t>(t_.along)];
    Value* last = k_.sub(k_.dim(extent(t_.along)), k_.i64(1));
    std::vector<Value*> vectors;
    for (int64_t j = 0; j < t_.width; ++j) {
      // behind the last element it is read again: no lane of a result takes it
      AxisValue& along = at.axes[static_cast<size_t>(t_.along)];
      if (env.mask || !all_along)
        along = {k_.min(k_.add(start.base, k_.i64(j)), last), false, 1};
      else
        along = {start.base, false, start.multiple, j};
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
