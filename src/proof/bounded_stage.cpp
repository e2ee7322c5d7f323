// Lanes hold points of the outer axes; reductions walk their axes with all lanes at once.
#include "proof/bounded_stage.hpp"

#include <algorithm>
#include <cmath>

#include "base/fail.hpp"
#include "proof/sum_error.hpp"
#include "region/reductions.hpp"
#include "tensor/number.hpp"

namespace opfuse {

void ReducedValues::resize(DType dtype, int64_t points) {
  const auto n = static_cast<size_t>(points);
  if (is_float(dtype))
    value.assign(n, 0);
  else
    integer.assign(n, 0);
  error.assign(n, {});
  tie.assign(n, 0);
}

LaneWalk::LaneWalk(const StagePlan& plan) : plan_(plan) {
  points_.shared.assign(plan.extents.size(), 0);
  points_.varies.assign(plan.extents.size(), false);
  points_.lanes.resize(plan.extents.size());
  for (const StagePlan::Operand& read : plan.reads) reads_.emplace_back(read.map);
}

std::vector<Lanes>& LaneWalk::slots() {
  while (slots_.size() <= depth_) slots_.emplace_back();
  return slots_[depth_];
}

void LaneWalk::start(const std::vector<int>& axes, int64_t first, int count) {
  points_.count = count;
  std::fill(points_.varies.begin(), points_.varies.end(), false);
  for (int i = 0; i < count; ++i) {
    int64_t point = first + i;
    for (size_t k = axes.size(); k-- > 0;) {
      const auto axis = static_cast<size_t>(axes[k]);
      points_.varies[axis] = true;
      points_.lanes[axis][static_cast<size_t>(i)] = point % plan_.extents[axis];
      point /= plan_.extents[axis];
    }
  }
  for (LaneIndex& read : reads_) read.start(points_);
}

void LaneWalk::share_all(const std::vector<int>& axes, int64_t point) {
  for (size_t k = axes.size(); k-- > 0;) {
    const auto axis = static_cast<size_t>(axes[k]);
    points_.shared[axis] = point % plan_.extents[axis];
    point /= plan_.extents[axis];
  }
}

const Lanes& LaneWalk::run(const LaneTape& tape) { return tape.run(*this, points_.count, slots()); }

void LaneWalk::load(int read, Lanes& out) {
  const StagePlan::Operand& operand = plan_.reads[static_cast<size_t>(read)];
  const BoundedTensor& t = *operand.tensor;
  LaneIndex& index = reads_[static_cast<size_t>(read)];
  ++depth_;
  const bool all = index.locate(points_, *this, slots());
  --depth_;
  out.reset(t.dtype);
  const bool real = is_float(t.dtype);
  for (int i = 0; i < points_.count; ++i) {
    const auto lane = static_cast<size_t>(i);
    if (!all && !index.inside[lane]) {
      out.value[lane] = 0, out.integer[lane] = 0;
      out.set_outside(i);
      continue;
    }
    const auto at = static_cast<size_t>(index.offset[lane]);
    if (real)
      out.value[lane] = t.value[at];
    else
      out.integer[lane] = t.integer[at];
    if (!t.error.empty() && !t.error[at].none()) out.set_error(i, t.error[at], t.tie[at] != 0);
    if (real && operand.folded && plan_.model.folded && !exact_constants_ && std::isfinite(out.value[lane]))
      out.set_error(i, out.error_of(i) + Reach::both(unit_of(t.dtype) * std::fabs(out.value[lane])), out.tie_of(i));
    if (index.any_uncertain && index.uncertain[lane]) out.set_error(i, Reach::anywhere(), true);
  }
}

void LaneWalk::in_bounds(int read, Lanes& out) {
  LaneIndex& index = reads_[static_cast<size_t>(read)];
  ++depth_;
  const bool all = index.locate(points_, *this, slots());
  --depth_;
  out.reset(DType::boolean);
  for (int i = 0; i < points_.count; ++i)
    out.integer[static_cast<size_t>(i)] = all || index.inside[static_cast<size_t>(i)];
}

void LaneWalk::coord(int axis, Lanes& out) {
  out.reset(DType::i64);
  for (int i = 0; i < points_.count; ++i) out.integer[static_cast<size_t>(i)] = points_.at(axis, i);
}

void LaneWalk::result(int reduction, Lanes& out) {
  const ReducedValues& r = (*reduced_)[static_cast<size_t>(reduction)];
  const DType dtype = plan_.sums[static_cast<size_t>(reduction)].dtype;
  out.reset(dtype);
  for (int i = 0; i < points_.count; ++i) {
    const auto lane = static_cast<size_t>(i), at = static_cast<size_t>(reduced_first_ + (reduced_same_ ? 0 : i));
    if (is_float(dtype))
      out.value[lane] = r.value[at];
    else
      out.integer[lane] = r.integer[at];
    if (!r.error[at].none()) out.set_error(i, r.error[at], r.tie[at] != 0);
  }
}

static void set_lane(Lanes& out, double value, int64_t integer, const Reach& error, bool tie) {
  out.value[0] = value, out.integer[0] = integer;
  out.set_error(0, error, tie);
}

void LaneWalk::store_lane(StagePlan::Result& result, const Lanes& v, int lane, size_t at) {
  BoundedTensor& t = *result.tensor;
  const auto from = static_cast<size_t>(lane);
  Lanes own, held, both;
  const Lanes* stored = &v;
  size_t number = from;
  if (result.combine) {
    own.reset(v.dtype), held.reset(v.dtype);
    set_lane(own, v.value[from], v.integer[from], v.error_of(lane), v.tie_of(lane));
    const bool real = is_float(t.dtype);
    set_lane(held, real ? t.value[at] : 0, real ? 0 : t.integer[at], t.error[at], t.tie[at] != 0);
    const Lanes* args[] = {&held, &own};
    apply_with_error(combiner(*result.combine), v.dtype, args, {}, nullptr, 1, both);
    stored = &both, number = 0;
  }
  Reach e = stored->error_of(static_cast<int>(number));
  if (is_float(t.dtype)) {
    t.value[at] = stored->real(static_cast<int>(number));
    e = stored_error(result.dtype, t.value[at], e);
  } else {
    t.integer[at] = is_float(v.dtype) ? truncate_to(t.dtype, stored->value[number]) : stored->integer[number];
  }
  t.error[at] = e;
  t.tie[at] = stored->tie_of(static_cast<int>(number));
  t.written[at] = 1;
}

void LaneWalk::store(StagePlan::Result& result, LaneIndex& index) {
  const Lanes& v = run(result.value);
  ++depth_;
  const bool all = index.locate(points_, *this, slots());
  --depth_;
  OPFUSE_CHECK(all || result.clipped, "a stage stores outside its result");
  for (int i = 0; i < points_.count; ++i) {
    if (!all && !index.inside[static_cast<size_t>(i)]) continue;
    if (v.outside_of(i)) throw fail(E::internal, "a value depends on a read outside its tensor that nothing guards");
    store_lane(result, v, i, static_cast<size_t>(index.offset[static_cast<size_t>(i)]));
  }
}

namespace {

/// What one reduction has gathered in each lane.
struct Gathered {
  Lanes extreme;  ///< of max, min, product, and of integers
  std::array<SumOfTerms, Lanes::kCount> sums{};
  std::array<double, Lanes::kCount> magnitudes{};  ///< sum|t|
  std::array<int, Lanes::kCount> lowest;           ///< exponent of the lowest bit of any term
  std::array<bool, Lanes::kCount> tie{};
};

void set_identity(ReduceKind kind, DType dtype, int count, Lanes& out) {
  out.reset(dtype);
  const ScalarValue identity = identity_of(kind, dtype);
  for (int i = 0; i < count; ++i) {
    out.value[static_cast<size_t>(i)] = identity.real;
    out.integer[static_cast<size_t>(i)] = identity.integer;
  }
}

void add_terms(const Lanes& t, int count, Gathered& g) {
  for (int i = 0; i < count; ++i) {
    const auto lane = static_cast<size_t>(i);
    const double v = t.value[lane];
    SumOfTerms& s = g.sums[lane];
    s.sum += v;
    s.errors += t.error_of(i);
    g.tie[lane] = g.tie[lane] || t.tie_of(i);
    if (v == 0 || !std::isfinite(v)) continue;
    s.squares += v * v;
    s.terms += 1;
    g.magnitudes[lane] += std::fabs(v);
    g.lowest[lane] = std::min(g.lowest[lane], lowest_bit(v));
  }
}

/// All terms are multiples of one power of two and no partial sum needs more bits than an f32 has.
bool is_exact_sum(const Gathered& g, size_t lane) {
  return g.sums[lane].errors.none() && g.magnitudes[lane] <= std::ldexp(1.0, std::min(1000, g.lowest[lane] + 24));
}

}  // namespace

double reduce_block(const StagePlan& plan, LaneWalk& walk, size_t reduction, int64_t first, int count,
                    ReducedValues& to, std::vector<ReducedValues>& all) {
  const StagePlan::Sum& sum = plan.sums[reduction];
  const bool gathers = sum.kind == ReduceKind::sum && is_float(sum.dtype);
  Gathered g;
  g.lowest.fill(1000);
  set_identity(sum.kind, sum.dtype, count, g.extreme);
  walk.use_results(&all, first, false);
  Lanes next;
  for (int64_t r = 0; r < plan.reduce_points; ++r) {
    walk.share_all(plan.reduce, r);
    const Lanes& term = walk.run(sum.value);
    if (!term.inside) throw fail(E::internal, "a value depends on a read outside its tensor that nothing guards");
    if (gathers) {
      add_terms(term, count, g);
      continue;
    }
    const Lanes* args[] = {&g.extreme, &term};
    apply_with_error(combiner(sum.kind), sum.dtype, args, {}, nullptr, count, next);
    std::swap(g.extreme, next);
  }
  double worst = 1;
  for (int i = 0; i < count; ++i) {
    const auto lane = static_cast<size_t>(i), at = static_cast<size_t>(first + i);
    if (!gathers) {
      if (is_float(sum.dtype))
        to.value[at] = g.extreme.value[lane];
      else
        to.integer[at] = g.extreme.integer[lane];
      to.error[at] = g.extreme.error_of(i);
      to.tie[at] = g.extreme.tie_of(i);
      continue;
    }
    const SumOfTerms& s = g.sums[lane];
    to.value[at] = s.sum;
    to.tie[at] = g.tie[lane];
    to.error[at] =
        is_exact_sum(g, lane) ? Reach::both(rounding_of(computed_in(sum.dtype), s.sum)) : sum_error(sum.dtype, s);
    if (overflow_sum(sum.dtype, g.magnitudes[lane], plan.model.typed, to.value[at], to.error[at])) walk.swallowed();
    if (!to.error[at].none()) worst = std::max(worst, worst_sum_error(sum.dtype, s) / to.error[at].most());
  }
  return worst;
}

}  // namespace opfuse
