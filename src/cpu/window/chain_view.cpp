#include "cpu/window/chain_view.hpp"

#include <fmt/format.h>

#include "cpu/window/mean_view.hpp"
#include "region/names.hpp"

namespace opfuse {
namespace {

std::string mismatch(const Region& region, const ChainView& view) {
  const Stage& first = region.stages[0];
  const Stage& second = region.stages[1];
  const Read& data = second.reads[static_cast<size_t>(view.second.data)];
  if (data.stage != 0) return "the window does not read the convolution";
  if (first.outputs.size() != 1 || first.outputs[0].param >= 0)
    return "the convolution's result is also needed elsewhere";
  if (first.domain.size() != 4 || second.domain.size() != 4) return "only two-dimensional images";
  for (size_t d = 1; d < 4; ++d)
    if (!first.domain[d].is_constant() || !second.domain[d].is_constant()) return "symbolic image extents";
  if (view.second.vec != 1 || view.first.vec != 1) return "channels are not the second dimension";
  for (const Read& r : second.reads)
    if (r.stage >= 0 && r.index != data.index) return "the window reads two results";
  if (view.first.group_out) return "grouped convolution before a window";
  return "";
}

}  // namespace

std::variant<ChainView, std::string> view_chain(const Region& region) {
  if (stages_without_means(region) != 2) return "not two stages";
  if (region.stages[0].anchor != Anchor::contraction || region.stages[1].anchor != Anchor::window)
    return fmt::format(
        "a {} loop nest and a {} one behind it have no kernel: a convolution and the window behind it have one, a "
        "result and its means, attention",
        name_of(region.stages[0].anchor), name_of(region.stages[1].anchor));
  const auto first = view_products(region, 0);
  if (const auto* why = std::get_if<std::string>(&first)) return "the convolution: " + *why;
  const ContractionView& sum = std::get<ContractionView>(first);
  if (sum.sums() != 1 || (sum.types.data != DType::f32 && sum.types.data != DType::bf16))
    return "the convolution: not one sum of products of f32 or bf16 data";
  if (sum.coded) return "the convolution: weights are codes";
  const auto second = view_window(region, 1);
  if (const auto* why = std::get_if<std::string>(&second)) return "the window: " + *why;
  if (std::get<WindowView>(second).padding != 0) return "the window: padding takes part";
  ChainView view{sum, std::get<WindowView>(second), {}, 1};
  if (std::string why = mismatch(region, view); !why.empty()) return why;
  for (const SlidingDim& d : view.second.sliding)
    if (d.axis == row_axis_of(view.second) && d.axis >= 0) view.rows = d;
  if (view.rows.axis != 2) return "the window has no rows";
  const Dim& taps = axis_extent(region.stages[1], view.rows.tap);
  if (!taps.is_constant()) return "a window of unknown height";
  view.taps = taps.value();
  return view;
}

}  // namespace opfuse
