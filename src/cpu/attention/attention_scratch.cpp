#include "cpu/attention/attention_scratch.hpp"

#include <algorithm>

#include "base/integers.hpp"

namespace opfuse {
namespace {

int64_t whole(int64_t count, int64_t of) { return ceil_of(count, of) * of; }

}  // namespace

int64_t group_rows(const AttentionSchedule& schedule) {
  return whole(std::max<int64_t>(schedule.group, 1), schedule.rows);
}

int64_t AttentionScratch::bytes(const TargetInfo& target) const {
  int64_t floats = 0;
  for (const int64_t piece : {packed_keys, packed_values, queries, scores, rows, rows, group, group, results})
    floats += whole(piece, target.line_floats());
  return 4 * floats;
}

AttentionScratch attention_scratch(const AttentionSchedule& schedule, const AttentionView& view, const Region& region,
                                   const TargetInfo& target) {
  const int64_t lanes = target.lanes_f32();
  const int64_t panel = schedule.nv * lanes, keys = whole(schedule.keys, panel);
  AttentionScratch s;
  s.depth_capacity = whole(view.head_size(region), lanes);
  s.key_capacity = whole(schedule.keys, lanes);
  // an odd number of lines between rows: they do not meet in one set of the cache
  s.score_stride = (ceil_of(keys, target.line_floats()) | 1) * target.line_floats();
  s.result_stride = whole(view.columns(region), schedule.nc * lanes);
  s.packed_keys = keys * s.depth_capacity;
  s.packed_values = s.result_stride * s.key_capacity;
  s.queries = schedule.rows * s.depth_capacity;
  s.scores = schedule.rows * s.score_stride;
  s.rows = schedule.rows;
  if (!schedule.group) return s;
  s.group = group_rows(schedule);
  s.results = s.group * s.result_stride;
  return s;
}

}  // namespace opfuse
