// Products whose inner tile a target's file brings along (docs/targets.md): which groups these are, how their operands
// lie, how they are cut. The skeleton's name is "intrinsic"; no region is one by itself, only by the composite that its
// group was matched as.
#pragma once

#include "cpu/parts_schedule.hpp"
#include "kernel/views.hpp"
#include "program/layout_wish.hpp"
#include "target/capabilities.hpp"

namespace opfuse {

struct IntrinsicSchedule : Parts {
  int64_t composite = 0;  ///< which of the target's file
  int64_t rows = 1, columns = 1, depth = 1;
  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("composite", self.composite, Range{0});
    field("rows", self.rows, Range{});
    field("columns", self.columns, Range{});
    field("depth", self.depth, Range{});
    Parts::each(self, field);
  }
};

/// Which of the file's composites the pattern is, where that names a function; nullopt: none.
std::optional<int64_t> intrinsic_of(const TargetInfo& target, std::string_view pattern);
bool has_intrinsics(const TargetInfo& target);
const Intrinsic& intrinsic_at(const TargetInfo& target, int64_t composite);

/// What of a region a tile cannot compute, and what would help; nullopt: nothing.
std::optional<std::string> intrinsic_misfit(const Region& region);
/// Weights in whole tiles, one stream for each block of columns; all else dense.
LayoutWish wish_intrinsic(const Region& region, const Intrinsic& tile);
Schedule schedule_intrinsic(const Region& region, int64_t composite, const TargetInfo& target);

/// How the weights of a view lie.
Layout intrinsic_weights(const ContractionView& view, size_t rank, int64_t columns, int64_t depth);
/// All domain axes but that of the columns: a row of the product is a point of these.
std::vector<int> intrinsic_row_axes(const Stage& stage, const ContractionView& view);

}  // namespace opfuse
