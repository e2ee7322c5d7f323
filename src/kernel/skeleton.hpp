// A skeleton is a kind of loop nest that a generator writes. Each generator has one table of them, in order, and only
// its table says which skeleton a region has:
//
//   may it be generated?   the first skeleton that sees it refuses nothing
//   how should it lie?     as the first that sees it and wishes something wishes
//   how is it computed?    the first that sees it and has candidates under the layouts: its first candidate
//
// What emits a skeleton stands in a second table, under the same name: code that needs no generator knows none.
#pragma once

#include <span>

#include "kernel/collapse.hpp"
#include "kernel/fastest.hpp"
#include "kernel/schedule_fields.hpp"

namespace opfuse {

/// How a skeleton gets its regions: as they were lowered, or simplified.
struct RegionForm {
  Region (*of)(const Region&);  ///< while layouts are open
  Collapsed (*under)(const Region&, const std::vector<ParamLayout>&);
};
extern const RegionForm kAsLowered;  ///< no axis dropped or merged
extern const RegionForm kCollapsed;  ///< kernel/collapse.hpp

using Candidate = Ranked<Schedule>;

/// Functions of region, layouts and target alone.
struct Skeleton {
  std::string_view name;  ///< which its schedules carry, and its emitter is listed by
  RegionForm form;
  /// Whether a region, in that form, is of this kind.
  bool (*see)(const Region&, const TargetInfo&);
  /// What cannot be generated of what it sees, whatever the layouts are; the region is as lowered. Null: nothing.
  std::optional<std::string> (*refuses)(const Region&, const TargetInfo&) = nullptr;
  bool any_layouts = false;  ///< it has a candidate under every layout
  /// How operands should lie. Null: it takes what others wished for.
  void (*wish)(const Region&, const TargetInfo&, LayoutWish&) = nullptr;
  /// The `most` fastest of its sensible schedules under these layouts, by predicted time; none: they are not for it.
  std::vector<Candidate> (*candidates)(const Region&, const std::vector<ParamLayout>&, const TargetInfo&,
                                       size_t most) = nullptr;
  /// Why a schedule is ill-formed, or does not fit region and layouts, with the number's name; nullopt: it may be
  /// emitted.
  std::optional<std::string> (*verify)(const Schedule&, const Region&, const std::vector<ParamLayout>&,
                                       const TargetInfo&) = nullptr;
  /// Predicted cycles of one core for one image; the region is as lowered, a symbolic extent counts as 1. Null: not
  /// known.
  double (*cost)(const Region&, const Schedule&, const TargetInfo&) = nullptr;
  /// Bytes of a part's scratch; the region is as lowered. Null: none between stages.
  int64_t (*scratch)(const Schedule&, const Region&, const TargetInfo&) = nullptr;
  /// Why a region that was joined of several would be slower than these apart. Null: it is not asked.
  std::optional<std::string> (*loses)(const Region&, const TargetInfo&) = nullptr;
};

using Skeletons = std::span<const Skeleton>;

/// The first of that name; null: there is none.
const Skeleton* find_skeleton(Skeletons table, std::string_view name);

/// The first that sees a region whose layouts are open; null: none does.
const Skeleton* first_to_see(Skeletons table, const Region& region, const TargetInfo& target);

LayoutWish wish_layouts(Skeletons table, const Region& region, const TargetInfo& target);

/// Of the first that sees the region and has any; none: no skeleton takes these layouts.
std::vector<Candidate> candidates(Skeletons table, const Region& region, const std::vector<ParamLayout>& layouts,
                                  const TargetInfo& target, size_t most);

/// The first candidate; without a skeleton where there is none.
Schedule choose_schedule(Skeletons table, const Region& region, const std::vector<ParamLayout>& layouts,
                         const TargetInfo& target);

/// The spec in the form that its skeleton emits: what that does not look at (a row cut in two dimensions, say) is gone.
/// Schedules are of the spec, not of this form.
KernelSpec as_emitted(Skeletons table, const KernelSpec& spec);

/// E::codegen_failed where the schedule names no skeleton, or its skeleton refuses it.
void verify(Skeletons table, const KernelSpec& spec, const TargetInfo& target);

/// Skeleton::verify where the fields say all there is to say.
template <class T>
std::optional<std::string> verify_as(const Schedule& schedule, const Region&, const std::vector<ParamLayout>&,
                                     const TargetInfo&) {
  return verify_fields<T>(schedule);
}

/// Skeleton::candidates of its own schedules.
template <class T>
std::vector<Candidate> erased(std::string_view skeleton, const std::vector<Ranked<T>>& schedules) {
  std::vector<Candidate> candidates;
  for (const auto& [cycles, schedule] : schedules) candidates.push_back({cycles, erased(skeleton, schedule)});
  return candidates;
}

}  // namespace opfuse
