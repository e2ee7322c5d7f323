// prepare -> plan -> apply -> lower: the order of the compiler, and why.
//   clean      first: folded shape arithmetic and removed identities let everything later see real neighbours
//   recompose  before conversions: conversions look for named operators
//   clean      again: conversions leave dead constants and foldable reshapes
//   plan       sees the operators a person would name; legality asks lowering and the generator, nothing else
#include "driver/pipeline.hpp"

#include "base/fail.hpp"
#include "codegen/codegen.hpp"
#include "passes/pass_manager.hpp"
#include "passes/passes.hpp"
#include "passes/recompose.hpp"
#include "program/build.hpp"
#include "region/lower.hpp"

namespace opfuse {

void prepare(Graph& graph, const PrepareOptions& options, std::vector<std::string>* notes) {
  if (!options.dims.empty()) graph.bind_dimensions(options.dims);
  RewriteReport report;
  run_passes(graph, cleaning_passes(), {.dump_dir = options.dump_dir});
  if (options.convert && recompose_and_convert(graph, &report))
    run_passes(graph, cleaning_passes(), {.dump_dir = options.dump_dir});
  if (!notes) return;
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

}  // namespace opfuse
