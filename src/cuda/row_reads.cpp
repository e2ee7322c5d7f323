#include "cuda/row_reads.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cuda/schedules.hpp"
#include "cuda/stage.hpp"
#include "region/dependence.hpp"

namespace opfuse::cuda {
namespace {

constexpr int64_t kPartialBytes = 1 << 10;  ///< for the partial results of a block's warps

int64_t bytes_along(const Region& region, const std::vector<int>& reads) {
  size_t bytes = 0;
  for (int r : reads)
    bytes +=
        byte_size(region.params[static_cast<size_t>(region.stages[0].reads[static_cast<size_t>(r)].index)].type.dtype);
  return static_cast<int64_t>(bytes);
}

bool runs_along(const Stage& stage, const Read& read) {
  const std::set<int> axes = axes_of(read.map);
  return !axes.empty() && *axes.rbegin() >= static_cast<int>(stage.domain.size());
}

/// Whether the element is known before the first reduction is: where it lies may be read, and a guard may leave it out.
bool keepable(const Stage& stage, int read) {
  bool known = true;
  for (const IndexExpr& d : stage.reads[static_cast<size_t>(read)].map.dims)
    if (d.dynamic) d.dynamic.visit([&](const Expr& x) { known &= x.op() != ExprOp::result; });
  return known;
}

bool inner_is_reduce(const Stage& stage, const RowAxes& axes) {
  if (axes.inner.size() != stage.reduce.size()) return false;
  for (size_t i = 0; i < axes.inner.size(); ++i)
    if (!(stage.domain[static_cast<size_t>(axes.inner[i])] == stage.reduce[i])) return false;
  return true;
}

/// Passes that take what read `along` takes.
int passes_of(const Stage& stage, const RowAxes& axes, const RowReads& row, int along) {
  int passes = 0;
  for (const Reduction& r : stage.reductions) passes += static_cast<int>(reads_used(r.value).count(along));
  if (!row.results_run_along) return passes;
  for (const StageOutput& o : stage.outputs)
    for (int here : reads_used(o.value))
      if (same_element(stage, axes, here, along)) return passes + 1;
  return passes;
}

std::string times(int passes) { return passes == 2 ? "twice" : fmt::format("{} times", passes); }

}  // namespace

bool same_element(const Stage& stage, const RowAxes& axes, int here, int along) {
  const Read &result = stage.reads[static_cast<size_t>(here)], &reduced = stage.reads[static_cast<size_t>(along)];
  const std::set<int> guarded = guarded_reads(stage);
  if (result.index != reduced.index || guarded.count(here) != guarded.count(along)) return false;
  const auto domain = static_cast<int>(stage.domain.size());
  IndexMap moved = reduced.map;
  for (IndexExpr& d : moved.dims)
    for (IndexTerm& t : d.terms)
      if (t.axis >= domain) t.axis = axes.inner[static_cast<size_t>(t.axis - domain)];
  return moved == result.map;
}

RowReads row_reads(const Stage& stage, const Region& region, const RowAxes& axes) {
  RowReads row;
  row.results_run_along = inner_is_reduce(stage, axes);
  std::set<int> reads;
  for (const Reduction& r : stage.reductions) reads.merge(reads_used(r.value));
  for (int r : reads) {
    if (!runs_along(stage, stage.reads[static_cast<size_t>(r)])) continue;
    const int passes = passes_of(stage, axes, row, r);
    row.passes = std::max(row.passes, passes);
    const bool kept = keepable(stage, r);
    if (kept) row.kept.push_back(r);
    if (passes > 1) (kept ? row.again : row.anew).push_back(r);
  }
  row.bytes = bytes_along(region, row.again);
  return row;
}

int64_t shared_budget(const TargetInfo& target) { return (target.shared_kilobytes << 10) - kPartialBytes; }

RowReading row_reading(const Region& region, const std::vector<ParamLayout>& layouts, const Schedule& schedule,
                       const TargetInfo& target) {
  const Stage& stage = region.stages[0];
  if (stage.reductions.empty() || stage.anchor == Anchor::window || schedule.skeleton != kRowsName) return {};
  const RowReads row = row_reads(stage, region, row_axes(stage, layouts));
  if (row.passes <= 1) return {"each row is read once", false};
  const std::string read = fmt::format("each row is read {}: ", times(row.passes));
  if (!row.anew.empty()) return {read + "where its elements lie depends on what was reduced", true};
  if (const int64_t kept = typed<RowsSchedule>(schedule).per_thread; kept > 0)
    return {fmt::format("each row is read once and kept in registers, {} elements a thread", kept), false};
  Dim count = 1;
  for (const Dim& d : stage.reduce) count = count * d;
  const int64_t held = typed<RowsSchedule>(schedule).held;
  if (held > 0 && count.is_constant())
    return {fmt::format("each row is read once and held in {} bytes of shared memory", held * row.bytes), false};
  const int64_t budget = shared_budget(target);
  if (held > 0)
    return {fmt::format("rows of up to {} elements are read once and held in shared memory; longer ones are read {}, "
                        "since a block has {} bytes of it on {}",
                        held, times(row.passes), budget, target.name),
            true};
  if (typed<RowsSchedule>(schedule).team == 1)
    return {read + "one thread goes along it, beside those of the neighbouring rows", true};
  return {
      read + fmt::format("{} elements of {} bytes are more than the {} bytes of shared memory that a block has on {}",
                         count.text(), row.bytes, budget, target.name),
      true};
}

}  // namespace opfuse::cuda
