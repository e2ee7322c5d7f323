// opfuse diff: fusions lost and gained between two models, plans or versions of either.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "compile_model.hpp"
#include "fusion/explain/plan_diff.hpp"
#include "inputs.hpp"
#include "model_arg.hpp"
#include "report.hpp"
#include "runtime/artifact.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

struct Flags {
  std::string first, second, target = "host";
  DimensionFlags dimensions;
  std::vector<std::string> fixed;
  PlanFlags plan;
  PassFlags passes;
  AlgorithmFlags algorithms;
  int threads = 0;  ///< of the runs, for the choice of algorithms
  size_t top = 0;
  bool fail_on_lost = false, json = false;
};

/// One of the two: what it fuses, and how many launches it runs where that is known.
struct Side {
  std::string name;
  FusionPlan plan;
  std::optional<size_t> launches;
};

Side side_of_model(const std::string& argument, const Flags& flags) {
  GivenModel model = open_model(argument, {.inputs = flags.fixed, .fix = Fix::all});
  if (model.executable) {
    const Artifact& artifact = model.executable->artifact();
    if (artifact.plan_json.empty())
      throw fail(E::bad_option, "'{}' was compiled without a plan: there is nothing to compare", argument);
    return {argument, plan_from_json(artifact.plan_json), artifact.launches.size()};
  }
  CompilationOptions options = compilation_options(given_dimensions(*model.graph, flags.dimensions), flags.plan);
  options.no_pass = flags.passes.off();
  options.allow_reference = true;
  options.algorithms = algorithm_request(flags.algorithms, flags.threads);
  options.timings = flags.algorithms.timings;
  const TargetInfo target = take_target(flags.target, options);
  Compilation compilation(*model.graph, target, options);
  compilation.run_to(Milestone::shaped);
  const Program* program = lower_or_note(compilation, "groups are compared, not launches");
  return {argument, std::move(compilation.plan), program ? std::optional(program->launches.size()) : std::nullopt};
}

Side side_of(const std::string& argument, const Flags& flags) {
  if (argument.ends_with(".json")) return {argument, plan_from_json(read_text_file(argument)), std::nullopt};
  return side_of_model(argument, flags);
}

Json json_of(const std::vector<FusionChange>& changes) {
  Json all = Json::array();
  for (const FusionChange& c : changes)
    all.push_back({{"producer", c.producer},
                   {"consumer", c.consumer},
                   {"tensor", c.tensor},
                   {"where", c.where},
                   {"code", c.code},
                   {"message", c.message},
                   {"change", c.change},
                   {"bytes", c.bytes ? Json(*c.bytes) : Json(nullptr)},
                   {"time_us", c.microseconds ? Json(*c.microseconds) : Json(nullptr)}});
  return all;
}

Json json_of(const Side& side) {
  return {{"name", side.name},
          {"model_hash", side.plan.model},
          {"target", side.plan.target},
          {"groups", side.plan.applied().size()},
          {"launches", side.launches ? Json(*side.launches) : Json(nullptr)}};
}

Json json_of(const Side& first, const Side& second, const PlanDiff& diff) {
  Json out = document("opfuse.diff/1");
  out["first"] = json_of(first);
  out["second"] = json_of(second);
  out["lost"] = json_of(diff.lost);
  out["gained"] = json_of(diff.gained);
  out["alike"] = diff.alike;
  out["only_in_first"] = {{"edges", diff.only_in_first}, {"one_launch", diff.fused_in_first}};
  out["only_in_second"] = {{"edges", diff.only_in_second}, {"two_launches", diff.apart_in_second}};
  out["modules"] = Json::object();
  for (const auto& [module, counts] : diff.modules) out["modules"][module] = {counts.first, counts.second};
  return out;
}

std::string side_text(const Side& side) {
  return fmt::format("{}   target {}   {} groups{}", side.name, side.plan.target, side.plan.applied().size(),
                     side.launches ? fmt::format(", {} launches", *side.launches) : "");
}

int run(const Flags& flags) {
  const Side first = side_of(flags.first, flags), second = side_of(flags.second, flags);
  const PlanDiff diff = diff_plans(first.plan, second.plan);
  if (flags.json)
    print_json(json_of(first, second, diff));
  else
    fmt::print("first    {}\nsecond   {}\n{}", side_text(first), side_text(second), diff_text(diff, flags.top));
  return flags.fail_on_lost && !diff.lost.empty() ? kCheckFailed : kOk;
}

}  // namespace

std::function<int()> add_diff(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("A", flags->first, "a model, a plan (fuse --plan-out), or an .opf")->required();
  app.add_option("B", flags->second, "what it is compared with: another of them")->required();
  app.add_flag("--fail-on-lost", flags->fail_on_lost, "exit with 1 where B runs as two launches what A runs as one");
  app.add_option("--top", flags->top, "at most this many lost, and this many gained");
  add_plan_flags(app, flags->plan);
  add_pass_flags(app, flags->passes);
  add_algorithm_flags(app, flags->algorithms);
  app.add_option("--threads", flags->threads, "threads of a run, for the choice of algorithms; 0: all available");
  add_target_flag(app, flags->target);
  add_dimension_flags(app, flags->dimensions);
  add_fixed_input_flag(app, flags->fixed);
  app.add_flag("--json", flags->json, "as JSON (docs/json.md)");
  return [flags] {
    take_plan(flags->dimensions, flags->plan);
    return run(*flags);
  };
}

}  // namespace opfuse::cli
