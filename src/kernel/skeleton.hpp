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

namespace opfuse {

/// How a skeleton gets its regions: as they were lowered, or simplified.
struct RegionForm {
  Region (*of)(const Region&);  ///< while layouts are open
  Collapsed (*under)(const Region&, const std::vector<ParamLayout>&);
};
extern const RegionForm kAsLowered;  ///< no axis dropped or merged
extern const RegionForm kCollapsed;  ///< kernel/collapse.hpp

/// Functions of region, layouts and target alone.
struct Skeleton {
  std::string_view name;  ///< which its schedules carry, and its emitter is listed by
  RegionForm form;
  /// Whether a region, in that form, is of this kind.
  bool (*see)(const Region&, const TargetInfo&);
  /// What cannot be generated of what it sees, whatever the layouts are; the region is as lowered. Null: nothing.
  std::optional<std::string> (*refuses)(const Region&, const TargetInfo&) = nullptr;
  /// How operands should lie. Null: it takes what others wished for.
  void (*wish)(const Region&, const TargetInfo&, LayoutWish&) = nullptr;
  /// Sensible schedules under these layouts, the best one first; none: the layouts are not for it.
  std::vector<Schedule> (*candidates)(const Region&, const std::vector<ParamLayout>&, const TargetInfo&) = nullptr;
  /// Predicted cycles of one core for one image; the region is as lowered, a symbolic extent counts as 1. Null: not
  /// known.
  double (*cost)(const Region&, const Schedule&, const TargetInfo&) = nullptr;
  /// Why a region that was joined of several would be slower than these apart. Null: it is not asked.
  std::optional<std::string> (*loses)(const Region&, const TargetInfo&) = nullptr;
};

using Skeletons = std::span<const Skeleton>;

/// The first of that name; null: there is none.
const Skeleton* find_skeleton(Skeletons table, std::string_view name);

/// The first that sees a region whose layouts are open; null: none does.
const Skeleton* first_to_see(Skeletons table, const Region& region, const TargetInfo& target);

LayoutWish wish_layouts(Skeletons table, const Region& region, const TargetInfo& target);

/// Without a skeleton where no candidate fits the layouts.
Schedule choose_schedule(Skeletons table, const Region& region, const std::vector<ParamLayout>& layouts,
                         const TargetInfo& target);

}  // namespace opfuse
