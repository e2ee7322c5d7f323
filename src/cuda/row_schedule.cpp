// Schedules of the rows skeleton: how many threads a row has, what they keep of it, how many neighbours they take at
// once.
#include "cuda/row_schedule.hpp"

#include <algorithm>

#include "cuda/row_reads.hpp"
#include "cuda/stage.hpp"
#include "cuda/vector_body.hpp"
#include "kernel/views.hpp"

namespace opfuse::cuda {
namespace {

constexpr int64_t kTypical = 8;              ///< stands for a symbolic extent
constexpr int64_t kKeptElements = 96;        ///< of a row in one thread's registers, of all its operands
constexpr int64_t kCrowdedBytes = 64 << 10;  ///< of shared memory; blocks with more have few beside them

int64_t widest_element(const Region& region) {
  size_t bytes = 1;
  for (const Param& p : region.params) bytes = std::max(bytes, byte_size(p.type.dtype));
  return static_cast<int64_t>(bytes);
}

/// Elements of a map that one thread takes together: 1 when some operand forbids it.
int64_t vector_of(const Region& region, const std::vector<ParamLayout>& layouts, const RowAxes& axes) {
  const Stage& stage = region.stages[0];
  if (axes.rows.empty() || !stage.reductions.empty()) return 1;
  const int axis = axes.rows.back();
  const int64_t vector = std::min<int64_t>(8, 16 / widest_element(region));
  const auto extent = stage.domain[static_cast<size_t>(axis)].constant();
  if (vector < 2 || !extent || *extent % vector) return 1;
  const auto fits = [&](int param, const IndexMap& map, bool moves) {
    const ParamLayout& l = layouts[static_cast<size_t>(param)];
    const auto step = step_along(map, l, axis);
    if (step == 0 && !moves) return true;
    return lies_together(map, l, static_cast<int>(stage.domain.size()), axis, vector) &&
           byte_size(region.params[static_cast<size_t>(param)].type.dtype) * static_cast<size_t>(vector) >= 4;
  };
  for (const StageOutput& o : stage.outputs)
    if (o.clipped || !fits(o.param, o.map, true)) return 1;
  if (!guarded_reads(stage).empty()) return 1;
  for (const Read& r : stage.reads)
    if (!fits(r.index, r.map, false)) return 1;
  return vector;
}

/// Reads of the reductions whose neighbours lie along the row (.first), and those whose neighbours are other rows.
std::pair<int, int> directions(const Stage& stage, const std::vector<ParamLayout>& layouts, const RowAxes& axes) {
  int along = 0, across = 0;
  const int last = static_cast<int>(stage.domain.size() + stage.reduce.size()) - 1;
  for (const Reduction& r : stage.reductions)
    for (int read : reads_used(r.value)) {
      const Read& x = stage.reads[static_cast<size_t>(read)];
      const ParamLayout& l = layouts[static_cast<size_t>(x.index)];
      along += step_along(x.map, l, last) == 1;
      if (!axes.rows.empty()) across += step_along(x.map, l, axes.rows.back()) == 1;
    }
  return {along, across};
}

bool open_rows(const Stage& stage) {
  return std::any_of(stage.reduce.begin(), stage.reduce.end(), [](const Dim& d) { return !d.is_constant(); });
}

/// Neighbours of a row that a thread of a team takes together: 1 when some operand or result forbids it.
int64_t vector_along(const Region& region, const std::vector<ParamLayout>& layouts, const RowAxes& axes,
                     const RowReads& row, int64_t count, int64_t team) {
  const Stage& stage = region.stages[0];
  const int last = static_cast<int>(stage.domain.size() + stage.reduce.size()) - 1;
  if (open_rows(stage) || !guarded_reads(stage).empty() || (!axes.inner.empty() && !row.results_run_along)) return 1;
  const auto fits = [&](int param, const IndexMap& map, int axis, int64_t vector) {
    const ParamLayout& l = layouts[static_cast<size_t>(param)];
    const auto bytes = static_cast<int64_t>(byte_size(region.params[static_cast<size_t>(param)].type.dtype));
    return lies_together(map, l, last + 1, axis, vector) && bytes * vector >= 4;
  };
  const auto all_fit = [&](int64_t vector) {
    if (stage.reduce.back().value() % vector) return false;
    std::set<int> reduced, stored;
    for (const Reduction& r : stage.reductions) reduced.merge(reads_used(r.value));
    for (const StageOutput& o : stage.outputs) stored.merge(reads_used(o.value));
    const auto reads_fit = [&](const std::set<int>& reads, int axis) {
      for (int r : reads) {
        const Read& read = stage.reads[static_cast<size_t>(r)];
        const bool moves = step_along(read.map, layouts[static_cast<size_t>(read.index)], axis) != 0;
        if (moves && !fits(read.index, read.map, axis, vector)) return false;
      }
      return true;
    };
    if (!reads_fit(reduced, last)) return false;
    if (axes.inner.empty()) return true;
    for (const StageOutput& o : stage.outputs)
      if (o.clipped || !fits(o.param, o.map, axes.inner.back(), vector)) return false;
    return reads_fit(stored, axes.inner.back());
  };
  int64_t vector = std::min<int64_t>(8, 16 / widest_element(region));
  while (vector > 1 && (count < team * vector || !all_fit(vector))) vector /= 2;
  return std::max<int64_t>(vector, 1);
}

/// Elements of a row in each thread's registers; 0 when they are too many.
int64_t in_registers(const Stage& stage, int64_t count, int64_t team, int64_t vector) {
  std::set<int> read;
  for (const Reduction& r : stage.reductions) read.merge(reads_used(r.value));
  const int64_t each = (count + team * vector - 1) / (team * vector) * vector;
  return each <= 32 && each * static_cast<int64_t>(read.size()) <= kKeptElements ? each : 0;
}

/// Rows side by side that several passes read: 32 of them a block, whose threads keep a share of each.
bool choose_across(const Region& region, const std::vector<ParamLayout>& layouts, const RowAxes& axes, int64_t count,
                   RowsSchedule& s) {
  const Stage& stage = region.stages[0];
  const RowReads row = row_reads(stage, region, axes);
  const auto [along, across] = directions(stage, layouts, axes);
  if (open_rows(stage) || stage.anchor == Anchor::window || along > 0 || across == 0 || row.again.empty() || count < 8)
    return false;
  for (int64_t team : {8, 16, 32}) {
    const int64_t each = in_registers(stage, count, team, 1);
    if (each == 0 || (each > 16 && team < 32)) continue;
    s.team = team;
    s.per_thread = each;
    s.across = 1;
    s.block = 32 * team;
    return true;
  }
  return false;
}

/// Threads of a row's team: one where rows (or windows) lie side by side, more where the reduced elements do. Rows that
/// several passes read are kept: in registers, else in shared memory, where only few blocks have room beside each other
/// and need more threads each.
void choose_team(const Region& region, const std::vector<ParamLayout>& layouts, const RowAxes& axes,
                 const TargetInfo& target, RowsSchedule& s) {
  const Stage& stage = region.stages[0];
  std::vector<int> reduce;
  for (size_t i = 0; i < stage.reduce.size(); ++i) reduce.push_back(static_cast<int>(stage.domain.size() + i));
  const int64_t count = typical_product(stage, reduce), rows = typical_product(stage, axes.rows);
  if (rows >= 64 && choose_across(region, layouts, axes, count, s)) return;
  const bool open = open_rows(stage);
  const auto [along, across] = directions(stage, layouts, axes);
  if (open ? along <= across : count < 32) return;
  if (along <= across && rows >= 2048) return;
  if (along == 0 && across > 0 && rows >= 64) return;
  const RowReads row = row_reads(stage, region, axes);
  for (int64_t team : {32, 256}) {
    if (open || along == 0 || (team == 32 && count > 1024)) continue;
    const int64_t vector = vector_along(region, layouts, axes, row, count, team);
    const int64_t each = in_registers(stage, count, team, vector);
    if (each == 0) continue;
    s.team = team;
    if (vector > 1) s.vector = vector;
    s.per_thread = each;
    return;
  }
  int64_t team = !open && count <= 1024 ? 32 : 256;
  const int64_t budget = shared_budget(target);
  if (!row.again.empty() && (open || (count > 1024 && count * row.bytes <= budget))) {
    s.held = open ? budget / row.bytes : count;
    if (!open) team = count * row.bytes > kCrowdedBytes ? 1024 : 512;
  }
  s.team = team;
  if (const int64_t vector = vector_along(region, layouts, axes, row, count, team); along > 0 && vector > 1)
    s.vector = vector;
}

}  // namespace

int64_t typical_product(const Stage& stage, const std::vector<int>& axes) {
  int64_t count = 1;
  for (int axis : axes) count *= axis_extent(stage, axis).constant().value_or(kTypical);
  return count;
}

void choose_rows(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target,
                 RowsSchedule& s) {
  const Stage& stage = region.stages[0];
  const RowAxes axes = row_axes(stage, layouts);
  if (!stage.reductions.empty()) choose_team(region, layouts, axes, target, s);
  if (const int64_t vector = vector_of(region, layouts, axes); vector > 1) s.vector = vector;
  if (!s.across) s.block = std::max<int64_t>(256, s.team);
}

}  // namespace opfuse::cuda
