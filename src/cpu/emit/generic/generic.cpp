// The nest every single stage fits into:
//
//   for row axes (split into parts):       domain axes the reductions depend on
//     for each reduction: for reduce axes  vertical (lanes of a domain axis) or horizontal (of a reduce axis)
//     for inner axes: outputs              domain axes only the outputs depend on
//
// Horizontal reductions take several neighbouring rows at once: their chains overlap and their lanes are combined
// together (row_reductions.cpp).
//
// What a pass over a row computes as an earlier one did rests in the result (resting_row.cpp). A stage that chooses
// between operands along an axis, as a concatenation does, is several nests, one after the other.
//
// Lanes run along the axis that is contiguous in the output and in most operands. Blocks with padding
// must have their axis as the lane axis, so that padding lanes can be written.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/fail.hpp"
#include "cpu/emit/emitters.hpp"
#include "cpu/emit/generic/interiors.hpp"
#include "cpu/emit/generic/interleaved.hpp"
#include "cpu/emit/generic/resting_row.hpp"
#include "cpu/emit/generic/row_reductions.hpp"
#include "cpu/emit/generic/row_tile.hpp"
#include "cpu/emit/generic/rows.hpp"
#include "cpu/emit/generic/segments.hpp"
#include "cpu/emit/generic/turned.hpp"
#include "cpu/emit/nest.hpp"
#include "cpu/emit/take_turns.hpp"
#include "cpu/nest_parts.hpp"
#include "cpu/operation_cost.hpp"
#include "kernel/choice_pieces.hpp"
#include "kernel/reads.hpp"
#include "region/dependence.hpp"

namespace opfuse::cpu {
namespace {

constexpr int kFewLanes = 4;           // a quarter of a vector
constexpr int64_t kUnrolledTrips = 8;  // of the lane axis, where elements differ by their place
constexpr int64_t kWholeTurns = 8;
constexpr int64_t kStripBytes = 64 << 10;  // of L2: beside it fetching a loop's code costs little
constexpr double kFunction = 8;            // of the work of an element that is copied: exp

class Generic {
 public:
  /// Of the region's stage, or one made of it, which must outlive this.
  Generic(Kernel& k, const Stage& stage) : Generic(k, stage, {}, {}, {}) {}
  /// Of a band of its rows, whose axes before the band's stand as in `at`.
  Generic(Kernel& k, const Stage& stage, std::optional<RowBand> band, const StageEmitter::Locals& locals, const Env& at)
      : k_(k),
        s_(k, stage, band ? band->stage : 0, locals),
        domain_(static_cast<int>(s_.stage.domain.size())),
        reductions_(k_, s_, plan_),
        band_(band),
        locals_(locals),
        at_(at) {
    s_.jumps = true;
  }
  void choose();
  /// Where the choices of a stage are cut into pieces: along whole vectors and blocks.
  bool cuts(const ChoiceCut& cut) const;
  void emit() { emit(work()); }
  void emit(const Dim& work);
  Dim work() const;

 private:
  Kernel& k_;
  StageEmitter s_;
  int domain_;
  NestPlan plan_;
  RowReductions reductions_;
  std::optional<RowBand> band_;
  StageEmitter::Locals locals_;
  Env at_;

  bool stands(int axis) const { return band_ && axis < band_->axis; }
  std::vector<int> memory_order() const;
  int width_for(int axis, int64_t block) const;
  int64_t output_block(int axis) const;
  bool needs_padding(int axis) const;
  LaneShape read_shape(int i, int axis, int width) const;
  int read_score(const std::set<int>& reads, int axis, int width) const;
  int output_score(int axis, int width) const;
  void choose_lane_axis(const std::vector<bool>& row_axis, const std::set<int>& reduced, const std::set<int>& all);
  bool unrolls(int axis) const;
  std::vector<Level> levels(const std::vector<int>& axes) const;
  Dim extent(int axis) const {
    return axis < domain_ ? s_.stage.domain[static_cast<size_t>(axis)]
                          : s_.stage.reduce[static_cast<size_t>(axis - domain_)];
  }
  void emit_rows(const Dim& work);
  bool emit_segments(const Dim& work);
  void store_strip(const Env& env, StageEmitter& segment);
  int64_t vectors_at_once() const;
  void store(const std::vector<StageEmitter::Point>& points);
};

/// Domain axes from the outermost in the first output's memory; axes it does not use come first.
std::vector<int> Generic::memory_order() const {
  std::vector<int> order;
  const auto& map = s_.stage.outputs.at(0).map;
  for (int dim : s_.outputs[0].layout.order)
    for (const IndexTerm& t : map.dims[static_cast<size_t>(dim)].terms)
      if (std::find(order.begin(), order.end(), t.axis) == order.end()) order.push_back(t.axis);
  for (int axis = domain_; axis-- > 0;)
    if (std::find(order.begin(), order.end(), axis) == order.end()) order.insert(order.begin(), axis);
  return order;
}

int64_t Generic::output_block(int axis) const {
  int64_t block = 1;
  for (size_t i = 0; i < s_.outputs.size(); ++i)
    for (const Block& b : s_.outputs[i].layout.blocks)
      for (const IndexTerm& t : s_.stage.outputs[i].map.dims[static_cast<size_t>(b.axis)].terms)
        if (t.axis == axis) block = std::lcm(block, b.factor);
  return block;
}

bool Generic::needs_padding(int axis) const {
  const int64_t block = output_block(axis);
  return block > 1 && !divides(block, extent(axis));
}

int Generic::width_for(int axis, int64_t block) const {
  int width = lanes_of(k_.target);
  const auto e = extent(axis).constant();
  while (e && width > 2 && width / 2 >= *e && block == 1) width /= 2;
  while (block > 1 && block % width != 0) width /= 2;
  return width;
}

/// An index that is looked up is the same for all lanes of an axis that it does not depend on: rows of a gather.
LaneShape Generic::read_shape(int i, int axis, int width) const {
  IndexMap map = s_.stage.reads[static_cast<size_t>(i)].map;
  for (IndexExpr& dim : map.dims)
    if (dim.dynamic && !axes_of(s_.stage, dim.dynamic).contains(axis)) dim = IndexExpr{{}, Dim(0), {}};
  return lane_shape(s_.reads[static_cast<size_t>(i)], map, axis, width);
}

int Generic::read_score(const std::set<int>& reads, int axis, int width) const {
  int score = 0;
  for (int i : reads) {
    const auto shape = read_shape(i, axis, width);
    score += shape.step == 1 ? 4 : shape.step == 2 ? 2 : shape.step == 0 ? 1 : -4;
  }
  return score;
}

int Generic::output_score(int axis, int width) const {
  int score = 0;
  for (size_t i = 0; i < s_.outputs.size(); ++i) {
    const auto shape = lane_shape(s_.outputs[i], s_.stage.outputs[i].map, axis, width);
    if (shape.step == 0) return -1000;
    score += shape.step == 1 ? 8 : -8;
  }
  return score;
}

void Generic::choose_lane_axis(const std::vector<bool>& row_axis, const std::set<int>& reduced,
                               const std::set<int>& all) {
  int best = -1, best_vertical = -1000;
  const bool reduces = !s_.stage.reductions.empty();
  for (int axis = 0; axis < domain_; ++axis) {
    const int64_t block = output_block(axis);
    const bool forced = needs_padding(axis);
    if ((extent(axis).constant() == 1 && !forced) || (band_ && axis <= band_->axis)) continue;
    const int width = width_for(axis, block);
    if (width < 2) continue;
    int score = output_score(axis, width) + read_score(all, axis, width) + (forced ? 10000 : 0);
    if (reduces && row_axis[static_cast<size_t>(axis)])
      best_vertical = std::max(best_vertical, read_score(reduced, axis, width) + (forced ? 10000 : 0));
    if (score <= best) continue;
    best = score;
    plan_.lane_axis = axis;
    plan_.lane_block = block;
    plan_.width = width;
  }
  if (!reduces || (plan_.lane_axis >= 0 && needs_padding(plan_.lane_axis))) return;
  for (size_t i = 0; i < s_.stage.reduce.size(); ++i) {
    const int axis = domain_ + static_cast<int>(i);
    if (extent(axis).constant() == 1) continue;
    const int width = width_for(axis, 1);
    const int score = read_score(reduced, axis, width);
    // domain axes have more than a few rows or the taps of a window
    const bool few = s_.stage.anchor == Anchor::window || kFewLanes * width <= lanes_of(k_.target);
    if (score <= std::max(best_vertical, 0) || (few && best_vertical >= 0)) continue;
    best_vertical = score;
    plan_.reduce_lane = axis;
    plan_.reduce_width = width;
  }
  if (plan_.reduce_lane >= 0 && plan_.lane_axis >= 0 && row_axis[static_cast<size_t>(plan_.lane_axis)])
    plan_.lane_axis = -1, plan_.width = 1, plan_.lane_block = 1;
}

void Generic::choose() {
  Dependence rows;
  for (const Reduction& r : s_.stage.reductions) add_dependence(s_.stage, r.value, rows);
  Dependence all = rows;
  for (const StageOutput& o : s_.stage.outputs) add_dependence(s_.stage, o.value, all);
  std::vector<bool> row_axis(s_.axis_count(), false);
  for (int axis : rows.axes) row_axis[static_cast<size_t>(axis)] = true;
  choose_lane_axis(row_axis, rows.reads, all.reads);
  for (int axis : memory_order()) {
    if (stands(axis)) continue;
    const bool row =
        s_.stage.reductions.empty() || row_axis[static_cast<size_t>(axis)] || (band_ && axis == band_->axis);
    (row ? plan_.rows : plan_.inner).push_back(axis);
  }
  int padded = 0;
  for (int axis = 0; axis < domain_; ++axis) padded += needs_padding(axis) && axis != plan_.lane_axis;
  for (size_t i = 1; i < s_.outputs.size(); ++i)
    if (!(s_.outputs[i].layout.blocks == s_.outputs[0].layout.blocks))
      throw fail(E::codegen_failed, "outputs of one kernel are stored in different blocks");
  if (padded) throw fail(E::codegen_failed, "more than one blocked axis has padding lanes to write");
  plan_.tile = std::max(rows_at_once(k_, s_.stage, plan_), vectors_at_once());
  plan_.chains = std::min(kMostChains, k_.target.multiply_adds_in_flight() / plan_.tile);
  plan_.interiors = interiors_of(k_, s_.stage, plan_);
}

int64_t Generic::vectors_at_once() const {
  if (!s_.stage.reductions.empty() || plan_.lane_axis < 0 || plan_.rows.back() != plan_.lane_axis) return 1;
  if (!has_long_epilogue(s_.stage) || s_.clips() || unrolls(plan_.lane_axis)) return 1;
  int64_t vectors = 0;
  for (const StageOutput& o : s_.stage.outputs)
    vectors = std::max(vectors, vectors_in_turns(o.value, k_.target.vector_registers));
  const auto size = extent(plan_.lane_axis).constant();
  if (!size) return vectors;
  const int64_t trips = *size / plan_.width;
  return vectors > trips ? (vectors / 2 > trips ? 1 : vectors / 2) : vectors;
}

/// Elements differ by their place along the lane axis (halves of a rotary embedding, borders), in few vectors: each of
/// them knows its own.
bool Generic::unrolls(int axis) const {
  const auto size = extent(axis).constant();
  if (axis != plan_.lane_axis || !s_.stage.reductions.empty() || !size || *size > kUnrolledTrips * plan_.width)
    return false;
  bool differs = false;
  for (const int read : guarded_reads(s_.stage))
    differs |= axes_of(s_.stage.reads[static_cast<size_t>(read)].map).contains(axis);
  for (const StageOutput& o : s_.stage.outputs)
    o.value.visit([&](const Expr& e) { differs |= e.op() == ExprOp::coord && e.index() == axis; });
  return differs;
}

std::vector<Level> Generic::levels(const std::vector<int>& axes) const {
  std::vector<Level> result;
  for (int axis : axes) {
    const bool lanes = axis == plan_.lane_axis;
    result.push_back({axis, lanes, extent(axis), lanes ? plan_.lane_block : 1, 1, unrolls(axis)});
    if (const auto it = plan_.interiors.find(axis); it != plan_.interiors.end() && !result.back().unrolled)
      result.back().interior = it->second;
  }
  return result;
}

Dim Generic::work() const {
  Dim outer = 1, reduce = 1, inner = 1;
  for (int axis : plan_.rows) outer = outer * extent(axis);
  for (int axis : plan_.inner) inner = inner * extent(axis);
  for (const Dim& d : s_.stage.reduce) reduce = reduce * d;
  double reduced = 0, stored = 1;
  for (const Reduction& r : s_.stage.reductions) reduced += 1 + kFunction * weight_of_functions(r.value);
  for (const StageOutput& o : s_.stage.outputs) stored = std::max(stored, 1 + kFunction * weight_of_functions(o.value));
  return outer * (Dim(std::llround(reduced)) * reduce + Dim(std::llround(stored)) * inner);
}

/// Rows of a tile lie where no other of them is read.
void Generic::store(const std::vector<StageEmitter::Point>& points) {
  if (s_.stage.reductions.empty()) return s_.store_outputs(points);
  const auto one = [&](size_t i) { s_.store_outputs_of(points[i]); };
  if (has_long_epilogue(s_.stage) && points.size() > 1 && !s_.clips()) return take_turns(k_, points.size(), one);
  for (size_t i = 0; i < points.size(); ++i) one(i);
}

bool Generic::cuts(const ChoiceCut& cut) const {
  const int64_t block = std::max<int64_t>(output_block(cut.axis), 1);
  const bool lanes = cut.axis == plan_.lane_axis;
  if (lanes && unrolls(cut.axis)) return false;
  const int64_t multiple = std::lcm(block, lanes ? int64_t{plan_.width} : 1);
  return std::all_of(cut.ends.begin(), cut.ends.end() - 1, [&](int64_t at) { return at % multiple == 0; });
}

void Generic::emit(const Dim& work) {
  if (const auto resting = find_resting_row(k_, s_, plan_)) {
    Generic made(k_, resting->stage, band_, locals_, at_);
    made.plan_ = plan_;
    const Operand place = made.s_.outputs[resting->output];
    if (resting->finished) made.s_.outputs[resting->output].base = nullptr;
    made.reductions_.also([&](size_t reduction, const Env& env, ExprEmitter& point) {
      if (static_cast<int>(reduction) != resting->reduction) return;
      Value* value = k_.splat(point.emit(resting->value, DType::f32), env.width);
      cpu::store(k_, place, address_of(k_, place, resting->map, env, nullptr), env, value);
    });
    return made.emit_rows(work);
  }
  emit_rows(work);
}

/// A loop over a strip.
void Generic::store_strip(const Env& env, StageEmitter& segment) {
  const Expr& value = segment.stage.outputs[0].value;
  const int64_t turns = std::min(vectors_in_turns(value, k_.target.vector_registers), env.tile);
  k_.loop(k_.i64(0), env.strip ? env.strip : k_.i64(env.tile), turns, [&](Value* i) {
    Env first = env;
    AxisValue& axis = first.axes.at(static_cast<size_t>(plan_.lane_axis));
    axis.base = k_.add(axis.base, k_.mul(i, k_.i64(plan_.width)));
    std::vector<StageEmitter::Point> points;
    for (int64_t v = 0; v < turns; ++v) points.push_back({reductions_.row_of(first, static_cast<size_t>(v)), {}});
    segment.store_outputs(points);
  });
}

bool Generic::emit_segments(const Dim& work) {
  if (plan_.tile == 1 || !s_.stage.reductions.empty() || !plan_.inner.empty()) return false;
  const Segments segments = segments_of(k_, s_);
  if (segments.order.empty()) return false;
  std::vector<StageEmitter> emitters;
  for (const Stage& stage : segments.stages) emitters.emplace_back(k_, stage, 0).jumps = true;
  std::vector<Level> outer = levels(plan_.rows);
  outer.back().tile = kWholeTurns;
  outer.back().strip = kStripBytes / (plan_.width * byte_size(DType::f32));
  Dim strips = 1;
  for (const int axis : plan_.rows) strips = strips * extent(axis);
  strips = max(Dim(1), floor_div(strips, outer.back().strip * plan_.width));
  Env first = s_.fresh_env(plan_.width);
  first.block = plan_.lane_block;
  Nest(k_, std::move(outer), plan_.width).emit_parts(first, min(work, strips * Dim(kNestGrain)), [&](const Env& env) {
    emit_in_order(k_, segments, [&](size_t stage) { store_strip(env, emitters[stage]); });
  });
  return true;
}

void Generic::emit_rows(const Dim& work) {
  if (emit_segments(work)) return;
  if (const auto blocks = find_interleaved(s_, plan_.lane_axis, plan_.lane_block))
    return emit_interleaved(k_, s_, *blocks, memory_order(), work);
  if (const auto turned = find_turned(s_, plan_.lane_axis, plan_.lane_block, plan_.width))
    return emit_turned(k_, s_, *turned, memory_order(), work);
  std::vector<Level> outer = levels(plan_.rows);
  if (plan_.tile > 1) outer.back().tile = plan_.tile;
  Nest rows(k_, std::move(outer), plan_.width);
  Nest inner(k_, levels(plan_.inner), plan_.width);
  const bool vertical = std::find(plan_.rows.begin(), plan_.rows.end(), plan_.lane_axis) != plan_.rows.end();
  Env first = s_.fresh_env(vertical ? plan_.width : 1);
  if (vertical) first.block = plan_.lane_block;
  for (int axis = 0; axis < domain_; ++axis)
    if (stands(axis)) first.axes[static_cast<size_t>(axis)] = at_.axes[static_cast<size_t>(axis)];
  const auto body = [&](const Env& env) {
    const RowReductions::Results results = reductions_.reduce(env);
    Env start = env;
    start.width = plan_.width;
    start.block = plan_.lane_block;
    const auto at_once = static_cast<size_t>(rows_stored_at_once(s_, plan_, static_cast<int64_t>(results.size())));
    for (size_t from = 0; from < results.size(); from += at_once)
      inner.emit_all(start, [&](const Env& point) {
        std::vector<StageEmitter::Point> points;
        for (size_t row = from; row < std::min(results.size(), from + at_once); ++row)
          points.push_back({reductions_.row_of(point, row), results[row]});
        store(points);
      });
  };
  if (band_) return rows.emit_range(first, band_->rows.begin, band_->rows.end, body);
  rows.emit_parts(first, work, body);
}

/// Each piece is cut into parts as the whole would be; a part does its share of all of them.
void emit_pieces(Kernel& k, const std::vector<Stage>& pieces, const Dim& work) {
  Dim most = 1;
  for (const Stage& piece : pieces) {
    llvm::BasicBlock* before = k.b.GetInsertBlock();
    auto* begin = llvm::BasicBlock::Create(k.context(), "piece", k.function);
    auto* after = llvm::BasicBlock::Create(k.context(), "pieces", k.function);
    k.b.SetInsertPoint(begin);
    Generic nest(k, piece);
    nest.choose();
    nest.emit(work);
    k.b.CreateBr(after);
    k.b.SetInsertPoint(before);
    k.b.CreateCondBr(k.b.CreateICmpSLT(k.part, k.dim(k.parts)), begin, after);
    k.b.SetInsertPoint(after);
    most = max(most, k.parts);
  }
  k.parts = most;
}

std::vector<Stage> pieces_of(Kernel& k, const Stage& stage, const Generic& whole) {
  const auto cut = cut_of_choices(k.spec.region, stage);
  std::vector<Stage> pieces;
  if (!cut || !whole.cuts(*cut)) return pieces;
  for (size_t i = 0; i < cut->pieces(); ++i) {
    auto piece = piece_of(k.spec.region, stage, cut->axis, cut->ends[i], cut->ends[i + 1]);
    if (!piece) return {};
    pieces.push_back(std::move(*piece));
  }
  return pieces;
}

void emit_whole(Kernel& k) {
  const Stage& stage = k.spec.region.stages.at(0);
  Generic whole(k, stage);
  whole.choose();
  const std::vector<Stage> pieces = pieces_of(k, stage, whole);
  if (pieces.empty()) return whole.emit();
  emit_pieces(k, pieces, whole.work());
}

}  // namespace

void emit_generic(Kernel& k) { emit_whole(k); }

void emit_rows(Kernel& k, const RowBand& band, const StageEmitter::Locals& locals, const Env& at) {
  Generic rows(k, k.spec.region.stages.at(static_cast<size_t>(band.stage)), band, locals, at);
  rows.choose();
  rows.emit();
}

}  // namespace opfuse::cpu
