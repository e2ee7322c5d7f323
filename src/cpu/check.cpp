// What the generator accepts: expressions that have functions, in a region that some skeleton sees and does not refuse.
// Everything else is an answer with a reason, never an attempt.
#include <fmt/format.h>

#include "cpu/functions.hpp"
#include "cpu/generator.hpp"
#include "cpu/skeletons.hpp"
#include "cpu/workspace.hpp"
#include "expr/visit_each.hpp"

namespace opfuse {
namespace {

std::optional<std::string> bad_expression(const std::vector<const Expr*>& values) {
  std::optional<std::string> why;
  visit_each(values, [&](const Expr& x) {
    if (x.args().empty() || why) return;
    if (!has_function(x.op(), x.dtype())) why = fmt::format("{} has no f64 form", name_of(x.op()));
  });
  return why;
}

std::optional<std::string> bad_stage(const Stage& stage) {
  if (stage.anchor == Anchor::attention) return "attention has no skeleton yet";
  if (stage.outputs.empty()) return "a stage without outputs";
  std::vector<const Expr*> values;
  for (const Reduction& r : stage.reductions) values.push_back(&r.value);
  for (const StageOutput& o : stage.outputs) values.push_back(&o.value);
  return bad_expression(values);
}

/// Programs lay images of these types as their kernel wishes (program/assign_layouts.cpp), or copy them into blocks
/// where something else keeps them dense (ProgramBuilder::without_kernel).
bool lies_as_wished(const Param& param) {
  const Shape& shape = param.type.shape;
  return param.type.dtype == DType::bf16 && shape.rank() == 4 && shape[1].is_constant() && shape[1].value() > 1;
}

/// Under the layouts that programs can always have: constants as they are wished, and of the rest those that `granted`
/// says; others dense.
bool has_candidate(const Region& region, const LayoutWish& wish, bool (*granted)(const Param&),
                   const TargetInfo& target) {
  std::vector<ParamLayout> layouts;
  for (size_t p = 0; p < region.params.size(); ++p) {
    const Param& param = region.params[p];
    Layout layout = Layout::dense(param.type.shape.rank());
    if (wish.params[p] && (param.role == ParamRole::constant || granted(param))) layout = *wish.params[p];
    layouts.push_back({layout, dense_strides(layout, param.type.shape)});
  }
  return !candidates(region, layouts, target, 1).empty();
}

bool has_candidate(const Region& region, const TargetInfo& target) {
  const LayoutWish wish = wish_layouts(region, target);
  return wish.any ||
         has_candidate(
             region, wish, [](const Param&) { return false; }, target) ||
         has_candidate(region, wish, lies_as_wished, target);
}

}  // namespace

std::optional<std::string> cannot_generate(const Region& region, const TargetInfo& target) {
  if (region.stages.empty()) return "no stage";
  for (const Param& p : region.params)
    if (byte_size(p.type.dtype) == 0) return fmt::format("elements of type {}", name_of(p.type.dtype));
  for (const Stage& stage : region.stages)
    if (auto why = bad_stage(stage)) return why;
  const Skeleton* skeleton = first_to_see(skeletons(), region, target);
  if (!skeleton) return fmt::format("{} stages, at most 2 or those of attention are generated", region.stages.size());
  if (skeleton->refuses)
    if (auto why = skeleton->refuses(region, target)) return why;
  if (!has_candidate(region, target)) return "no skeleton takes its operands as they are dense";
  return exceeds_workspace(region, target);
}

}  // namespace opfuse
