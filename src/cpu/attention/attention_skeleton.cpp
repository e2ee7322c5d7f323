// Attention as a skeleton: any layouts will do, and dense ones are wished, since it packs what it reads itself.
#include "cpu/schedules.hpp"
#include "cpu/skeletons.hpp"
#include "kernel/attention_view.hpp"

namespace opfuse {
namespace {

bool see(const Region& region, const TargetInfo&) { return resembles_attention(region); }

std::optional<std::string> refuses(const Region& region, const TargetInfo&) {
  if (auto why = refuse_sequence(region)) return why;
  const auto found = view_attention(region);
  const auto* why = std::get_if<std::string>(&found);
  return why ? std::optional("attention: " + *why) : std::nullopt;
}

void wish(const Region& region, const TargetInfo&, LayoutWish& wish) {
  for (size_t p = 0; p < region.params.size(); ++p)
    if (const size_t rank = region.params[p].type.shape.rank(); rank > 2) wish.params[p] = Layout::dense(rank);
  wish.writes_padding = false;
}

std::vector<Schedule> candidates(const Region& region, const std::vector<ParamLayout>&, const TargetInfo& target) {
  Schedule s;
  if (!schedule_attention(region, target, s)) return {};
  return {s};
}

}  // namespace

Skeleton attention_skeleton() {
  return {
      .name = "attention", .form = kAsLowered, .see = see, .refuses = refuses, .wish = wish, .candidates = candidates};
}

}  // namespace opfuse
