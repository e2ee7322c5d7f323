#include "cuda/attention_maps.hpp"

#include "kernel/reads.hpp"

namespace opfuse::cuda {

std::optional<AttentionMaps> attention_maps(const Region& region, const std::vector<ParamLayout>& layouts,
                                            const AttentionView& view, const AttentionTmaSchedule& s) {
  if (view.head_size(region) % 8) return std::nullopt;
  const auto k = map_of_rows(region, layouts, 0, view.key, {view.depth, view.key_axis, s.keys});
  const auto v = map_of_rows(region, layouts, 2, view.value, {view.column, view.summed, s.keys});
  if (!k || !v) return std::nullopt;
  return AttentionMaps{map_of_rows(region, layouts, 0, view.query, {view.depth, view.row, s.groups * 64}), *k, *v};
}

int64_t attention_tma_bytes(const AttentionTmaSchedule& s, int64_t depth, int64_t columns) {
  const int64_t queries = s.groups * 64 * panels_of(depth);
  const int64_t ring = s.stages * s.keys * (panels_of(depth) + panels_of(columns));
  const int64_t staging = s.groups * 64 * (kAttentionPart + kAttentionPad) * 4;
  return (queries + ring) * 128 + staging + (1 + 2 * s.stages) * 8;
}

int attention_tma_resident(const AttentionTmaSchedule& s, const Region& region, const AttentionView& view) {
  const bool narrow = s.keys == 64 && panels_of(view.head_size(region)) + panels_of(view.columns(region)) == 2 &&
                      reads_used(region.stages[0].outputs[0].value).empty();
  return narrow || s.groups == 1 ? 2 : 1;
}

}  // namespace opfuse::cuda
