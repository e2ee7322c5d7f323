// The questions that a table of skeletons answers, each a walk down the table.
#include "kernel/skeleton.hpp"

#include <map>

#include "base/fail.hpp"

namespace opfuse {
namespace {

/// A region in each form that skeletons of a table ask for, made once.
class Forms {
 public:
  explicit Forms(const Region& region) : region_(region) {}
  const Region& of(const RegionForm& form) {
    const auto at = seen_.find(form.of);
    return at != seen_.end() ? at->second : seen_.emplace(form.of, form.of(region_)).first->second;
  }

 private:
  const Region& region_;
  std::map<Region (*)(const Region&), Region> seen_;
};

Region unchanged(const Region& region) { return region; }
Collapsed unchanged_under(const Region& region, const std::vector<ParamLayout>& layouts) { return {region, layouts}; }

}  // namespace

const RegionForm kAsLowered = {unchanged, unchanged_under};
const RegionForm kCollapsed = {without_unit_axes, collapse};

const Skeleton* find_skeleton(Skeletons table, std::string_view name) {
  for (const Skeleton& skeleton : table)
    if (skeleton.name == name) return &skeleton;
  return nullptr;
}

const Skeleton* first_to_see(Skeletons table, const Region& region, const TargetInfo& target) {
  Forms forms(region);
  for (const Skeleton& skeleton : table)
    if (skeleton.see(forms.of(skeleton.form), target)) return &skeleton;
  return nullptr;
}

LayoutWish wish_layouts(Skeletons table, const Region& region, const TargetInfo& target) {
  LayoutWish wish;
  wish.params.resize(region.params.size());
  wish.any = false;
  bool wished = false;
  Forms forms(region);
  for (const Skeleton& skeleton : table) {
    const Region& seen = forms.of(skeleton.form);
    if (!skeleton.see(seen, target)) continue;
    wish.any |= skeleton.any_layouts;
    if (skeleton.wish && !wished) skeleton.wish(seen, target, wish), wished = true;
  }
  return wish;
}

std::vector<Candidate> candidates(Skeletons table, const Region& region, const std::vector<ParamLayout>& layouts,
                                  const TargetInfo& target, size_t most) {
  for (const Skeleton& skeleton : table) {
    const Collapsed c = skeleton.form.under(region, layouts);
    if (!skeleton.see(c.region, target)) continue;
    std::vector<Candidate> found = skeleton.candidates(c.region, c.layouts, target, most);
    if (!found.empty()) return found;
  }
  return {};
}

Schedule choose_schedule(Skeletons table, const Region& region, const std::vector<ParamLayout>& layouts,
                         const TargetInfo& target) {
  const std::vector<Candidate> found = candidates(table, region, layouts, target, 1);
  return found.empty() ? Schedule{} : found.front().choice;
}

KernelSpec as_emitted(Skeletons table, const KernelSpec& spec) {
  const Skeleton* skeleton = find_skeleton(table, spec.schedule.skeleton);
  if (!skeleton) return spec;  // verify says so
  Collapsed form = skeleton->form.under(spec.region, spec.layouts);
  return {std::move(form.region), std::move(form.layouts), spec.symbols, spec.schedule};
}

void verify(Skeletons table, const KernelSpec& spec, const TargetInfo& target) {
  const Skeleton* skeleton = find_skeleton(table, spec.schedule.skeleton);
  if (!skeleton) {
    if (spec.schedule.skeleton.empty()) throw fail(E::codegen_failed, "no skeleton takes the layouts of the operands");
    throw fail(E::codegen_failed, "no skeleton is named '{}'", spec.schedule.skeleton);
  }
  const Collapsed c = skeleton->form.under(spec.region, spec.layouts);
  if (const auto why = skeleton->verify(spec.schedule, c.region, c.layouts, target))
    throw fail(E::codegen_failed, "the schedule '{}' cannot be emitted: {}", spec.schedule.text(), *why);
}

}  // namespace opfuse
