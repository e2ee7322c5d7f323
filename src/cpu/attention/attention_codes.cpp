#include "cpu/attention/attention_codes.hpp"

#include <algorithm>

#include "cpu/contraction/codes.hpp"

namespace opfuse {

std::optional<AttentionCodes> attention_codes(const Region& region, const AttentionView& view,
                                              const TargetInfo& target) {
  if (!target.has("avx512vnni") || target.vector_bytes != 64) return std::nullopt;
  const auto keys = region.stages[0].domain[static_cast<size_t>(view.key_axis)].constant();
  if (!view.weight || view.head_size(region) % kWordBytes != 0 || !keys) return std::nullopt;
  if (std::max(view.head_size(region), *keys) > kMostCodeProducts) return std::nullopt;
  const auto query = coded_factor(region.stages[0], view.query), key = coded_factor(region.stages[0], view.key);
  const auto weight = coded_factor(region.stages[1], view.weight), value = coded_factor(region.stages[2], view.value);
  if (!query || !key || !weight || !value) return std::nullopt;
  return AttentionCodes{*query, *key, *value, *weight};
}

bool multiplies_codes(const Region& region, const TargetInfo& target) {
  if (!resembles_attention(region)) return false;
  const auto found = view_attention(region);
  const auto* view = std::get_if<AttentionView>(&found);
  return view && attention_codes(region, *view, target);
}

}  // namespace opfuse
