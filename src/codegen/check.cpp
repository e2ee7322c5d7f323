// What the generator accepts. Everything else is an answer with a reason, never an attempt.
#include <fmt/format.h>

#include "codegen/attention_view.hpp"
#include "codegen/codegen.hpp"
#include "codegen/functions.hpp"
#include "codegen/views.hpp"

namespace opfuse {
namespace {

std::optional<std::string> bad_expression(const Expr& e) {
  std::optional<std::string> why;
  e.visit([&](const Expr& x) {
    if (x.args().empty() || why) return;
    if (!has_function(x.op(), x.dtype())) why = fmt::format("{} has no f64 form", name_of(x.op()));
  });
  return why;
}

std::optional<std::string> bad_sequence(const Region& region) {
  if (resembles_attention(region)) {
    const auto found = view_attention(region);
    const auto* why = std::get_if<std::string>(&found);
    return why ? std::optional("attention: " + *why) : std::nullopt;
  }
  if (region.stages.size() > 2)
    return fmt::format("{} stages, at most 2 or those of attention are generated", region.stages.size());
  const Stage& first = region.stages[0];
  const Stage& second = region.stages[1];
  if (first.anchor != Anchor::contraction || second.anchor != Anchor::window)
    return "two stages are generated only for a convolution and a pooling window";
  const auto c = view_contraction(region, 0);
  if (const auto* why = std::get_if<std::string>(&c)) return "the convolution: " + *why;
  const auto w = view_window(region, 1);
  if (const auto* why = std::get_if<std::string>(&w)) return "the pooling: " + *why;
  const auto& view = std::get<WindowView>(w);
  const Read& data = second.reads[static_cast<size_t>(view.data)];
  if (data.stage != 0) return "the pooling does not read the convolution";
  if (first.outputs.size() != 1 || first.outputs[0].param >= 0)
    return "the convolution's result is also needed elsewhere";
  if (first.domain.size() != 4 || second.domain.size() != 4) return "only two-dimensional images";
  for (size_t d = 1; d < 4; ++d)
    if (!first.domain[d].is_constant() || !second.domain[d].is_constant()) return "symbolic image extents";
  for (const Read& r : second.reads)
    if (r.stage >= 0 && r.index != data.index) return "the pooling reads two results";
  if (std::get<ContractionView>(c).group_out) return "grouped convolution before a pooling";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> cannot_generate(const Region& region, const TargetInfo&) {
  if (region.stages.empty()) return "no stage";
  for (const Param& p : region.params)
    if (byte_size(p.type.dtype) == 0) return fmt::format("elements of type {}", name_of(p.type.dtype));
  for (const Stage& stage : region.stages) {
    if (stage.anchor == Anchor::attention) return "attention has no skeleton yet";
    if (stage.outputs.empty()) return "a stage without outputs";
    for (const Reduction& r : stage.reductions)
      if (auto why = bad_expression(r.value)) return why;
    for (const StageOutput& o : stage.outputs)
      if (auto why = bad_expression(o.value)) return why;
  }
  return region.stages.size() > 1 ? bad_sequence(region) : std::nullopt;
}

}  // namespace opfuse
