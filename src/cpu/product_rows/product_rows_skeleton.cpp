// A product and the reduction of its rows in one kernel, as a skeleton: the product wishes as it would alone,
// everything else is dense.
#include <fmt/format.h>

#include "cpu/product_rows/product_rows_cost.hpp"
#include "cpu/schedules.hpp"
#include "cpu/skeletons.hpp"
#include "cpu/workspace.hpp"

namespace opfuse {
namespace {

bool see(const Region& region, const TargetInfo&) { return resembles_product_rows(region); }

std::optional<std::string> refuses(const Region& region, const TargetInfo& target) {
  if (auto why = refuse_sequence(region)) return why;
  const auto found = view_product_rows(region);
  if (const auto* why = std::get_if<std::string>(&found)) return "a product and the reduction of its rows: " + *why;
  const auto& view = std::get<ProductRowsView>(found);
  if (most_rows_in_scratch(view, target) > 0) return std::nullopt;
  const int64_t bytes = view.scratch_bytes(1, target);
  return fmt::format(
      "a row of {} columns takes {} bytes of a part's scratch, and {} {:.0f}", view.columns, bytes,
      within_workspace(bytes, target) ? "shares.chain_band of L2 (the target's file) is" : "--workspace allows",
      scratch_room(target.shares.chain_band, target));
}

void wish(const Region& region, const TargetInfo& target, LayoutWish& wish) {
  const auto found = view_product_rows(region);
  const auto* view = std::get_if<ProductRowsView>(&found);
  if (!view) return;
  wish_contraction(region, target, wish);
  const auto param_of = [&](int read) {
    return static_cast<size_t>(region.stages[0].reads[static_cast<size_t>(read)].index);
  };
  for (size_t p = 0; p < region.params.size(); ++p)
    if (const size_t rank = region.params[p].type.shape.rank();
        rank > 2 && p != param_of(view->product.data) && p != param_of(view->product.weights))
      wish.params[p] = Layout::dense(rank);
  wish.writes_padding = false;
}

std::vector<Candidate> schedules(const Region& region, const std::vector<ParamLayout>& layouts,
                                 const TargetInfo& target, size_t most) {
  return erased("product_rows", schedule_product_rows(region, layouts, target, most));
}

std::optional<std::string> check(const Schedule& schedule, const Region& region,
                                 const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  if (auto why = verify_fields<ProductRowsSchedule>(schedule)) return why;
  const auto s = typed<ProductRowsSchedule>(schedule);
  if (s.parts_o != 1) return fmt::format("parts_o={}: a part has whole rows", int64_t{s.parts_o});
  if (s.overlap || s.k_block) return "overlap or k_block: rows are reduced as soon as their last column is done";
  if (s.tile_h != 1) return fmt::format("tile_h={} of rows in a band", int64_t{s.tile_h});
  return misfit(s, region, layouts, target);
}

int64_t scratch(const Schedule& schedule, const Region& region, const TargetInfo& target) {
  const auto found = view_product_rows(region);
  const auto* view = std::get_if<ProductRowsView>(&found);
  return view ? view->scratch_bytes(typed<ProductRowsSchedule>(schedule).band, target) : 0;
}

}  // namespace

Skeleton product_rows_skeleton() {
  return {.name = "product_rows",
          .form = kAsLowered,
          .see = see,
          .refuses = refuses,
          .wish = wish,
          .candidates = schedules,
          .verify = check,
          .scratch = scratch};
}

}  // namespace opfuse
