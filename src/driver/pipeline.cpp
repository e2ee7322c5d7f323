// prepare -> plan -> apply -> lower: the order of the compiler, and why.
//   clean      first: folded shape arithmetic and removed identities let everything later see real neighbours
//   recompose  before conversions: conversions look for named operators
//   clean      again: conversions leave dead constants and foldable reshapes
//   plan       sees the operators a person would name; legality asks lowering and the generator, nothing else
#include "driver/pipeline.hpp"

#include <fmt/core.h>

#include "base/fail.hpp"
#include "codegen/codegen.hpp"
#include "fusion/slices.hpp"
#include "ir/outline.hpp"
#include "passes/name_values.hpp"
#include "passes/pass_manager.hpp"
#include "passes/passes.hpp"
#include "passes/recompose.hpp"
#include "program/build.hpp"
#include "region/lower.hpp"

namespace opfuse {

namespace {

/// Rewrites of the catalogue as passes of the manager.
Pass recompose_pass() {
  return {"recompose-and-convert",
          "Exporters' spellings become named operators; the catalogue's conversions.",
          [](Graph& graph, PassContext& context) { return recompose_and_convert(graph, context.report); },
          {}};
}

std::vector<Pass> preparation(bool convert) {
  std::vector<Pass> passes = cleaning_passes();
  if (!convert) return passes;
  passes.push_back(recompose_pass());
  for (Pass& pass : cleaning_passes()) passes.push_back(std::move(pass));
  return passes;
}

}  // namespace

void prepare(Graph& graph, const PrepareOptions& options, std::vector<std::string>* notes) {
  if (!options.dims.empty()) graph.bind_dimensions(options.dims);
  RewriteReport report;
  const PassRun run =
      run_passes(graph, preparation(options.convert), {.dump_dir = options.dump_dir, .report = &report});
  name_values(graph);
  if (!notes) return;
  notes->insert(notes->end(), run.notes.begin(), run.notes.end());
  for (const RewriteNote& note : report.notes)
    notes->push_back(note.applied ? fmt::format("{} at {}: {}", note.rule, note.node, note.reason.message)
                                  : fmt::format("{} at {} declined, {}: {}", note.rule, note.node, note.reason.code,
                                                note.reason.message));
}

std::optional<Decline> illegal_on(const Node& node, const TargetInfo& target) {
  auto lowered = lower_group(node);
  if (auto* decline = std::get_if<Decline>(&lowered)) return *decline;
  if (auto reason = cannot_generate(std::get<LoweredGroup>(lowered).region, target))
    return Decline{"not_generated", *reason, {node.name()}};
  return std::nullopt;
}

FusionPlan plan_graph(const Graph& prepared, const TargetInfo& target, const PlanRequest& request) {
  PlanOptions options;
  options.target = target.name;
  options.legal = [&target](const Node& node) { return illegal_on(node, target); };
  options.only = request.only;
  options.skip = request.skip;
  options.rules = request.rules;
  return make_plan(prepared, options);
}

/// What one kernel cannot do is planned again as smaller groups; modules that may be divided are not tried again.
static Graph divided(const Node& fused, const TargetInfo& target) {
  Graph body = fused.body->clone();
  expand_bodies(body);
  static const std::vector<FusionPattern> kWhole = [] {
    std::vector<FusionPattern> patterns = fusion_patterns();
    std::erase_if(patterns, [](const FusionPattern& p) { return p.divisible; });
    return patterns;
  }();
  PlanOptions options;
  options.legal = [&target](const Node& node) { return illegal_on(node, target); };
  options.patterns = &kWhole;
  const FusionPlan plan = make_plan(body, options);
  const bool same = plan.applied().size() == 1 && plan.applied()[0]->nodes.size() == body.nodes().size();
  return same ? std::move(body) : apply(body, plan);
}

void shape_for_target(Graph& fused, const TargetInfo& target, std::vector<std::string>* notes) {
  for (std::string& note : run_in_slices(fused, target.lanes_f32()))
    if (notes) notes->push_back(std::move(note));
}

Program lower_to_program(const Graph& graph, const TargetInfo& target, bool allow_reference) {
  BuildOptions options;
  options.allow_reference = allow_reference;
  options.cannot_generate = [&](const Region& region) { return cannot_generate(region, target); };
  options.divide = [&](const Node& node) { return divided(node, target); };
  options.wish_layouts = [&](const Region& region) { return wish_layouts(region, target).params; };
  options.choose_schedule = [&](const Region& region, const std::vector<Layout>& layouts,
                                const std::vector<std::vector<Dim>>& strides) {
    std::vector<ParamLayout> params;
    for (size_t i = 0; i < layouts.size(); ++i) params.push_back({layouts[i], strides[i]});
    return choose_schedule(region, params, target);
  };
  return build_program(graph, target, options);
}

}  // namespace opfuse
