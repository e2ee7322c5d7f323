// Attention as a skeleton: any layouts will do, and dense ones are wished, since it packs what it reads itself.
#include <fmt/format.h>

#include "cpu/attention/attention_scratch.hpp"
#include "cpu/schedules.hpp"
#include "cpu/skeletons.hpp"

namespace opfuse {
namespace {

bool see(const Region& region, const TargetInfo&) { return resembles_attention(region); }

std::optional<std::string> refuses(const Region& region, const TargetInfo& target) {
  if (auto why = refuse_sequence(region)) return why;
  const auto found = view_attention(region);
  if (const auto* why = std::get_if<std::string>(&found)) return "attention: " + *why;
  if (std::get<AttentionView>(found).weight && schedule_attention(region, target, 1).empty())
    return "attention: the weights are changed behind the softmax, and all keys of a row do not fit in one block";
  return std::nullopt;
}

void wish(const Region& region, const TargetInfo&, LayoutWish& wish) {
  for (size_t p = 0; p < region.params.size(); ++p)
    if (const size_t rank = region.params[p].type.shape.rank(); rank > 2) wish.params[p] = Layout::dense(rank);
  wish.writes_padding = false;
}

std::vector<Candidate> schedules(const Region& region, const std::vector<ParamLayout>&, const TargetInfo& target,
                                 size_t most) {
  return erased("attention", schedule_attention(region, target, most));
}

/// In one block, all keys; of an open number there are several.
std::optional<std::string> check(const Schedule& schedule, const Region& region, const std::vector<ParamLayout>&,
                                 const TargetInfo&) {
  if (auto why = verify_fields<AttentionSchedule>(schedule)) return why;
  const auto s = typed<AttentionSchedule>(schedule);
  const auto found = view_attention(region);
  const auto* view = std::get_if<AttentionView>(&found);
  if (s.group && view && view->weight) return "weights that are changed behind the softmax in several blocks of keys";
  const Dim& keys = region.stages[0].domain.back();
  if (!s.group && keys != Dim(s.keys)) return fmt::format("keys={} of {} in one block", s.keys, keys.text());
  return std::nullopt;
}

int64_t scratch(const Schedule& schedule, const Region& region, const TargetInfo& target) {
  const auto found = view_attention(region);
  const auto* view = std::get_if<AttentionView>(&found);
  return view ? attention_scratch(typed<AttentionSchedule>(schedule), *view, region, target).bytes(target) : 0;
}

}  // namespace

Skeleton attention_skeleton() {
  return {.name = "attention",
          .form = kAsLowered,
          .see = see,
          .refuses = refuses,
          .any_layouts = true,
          .wish = wish,
          .candidates = schedules,
          .verify = check,
          .scratch = scratch};
}

}  // namespace opfuse
