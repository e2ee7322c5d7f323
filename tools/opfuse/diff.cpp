// opfuse diff: fusions lost and gained between two models, plans or versions of either, or between settings of one.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <ranges>

#include "base/fail.hpp"
#include "compile_model.hpp"
#include "fusion/explain/plan_diff.hpp"
#include "inputs.hpp"
#include "model_arg.hpp"
#include "plan_file.hpp"
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

/// One of the two: what it fuses, how many launches it runs and what their arena takes, where that is known.
struct Side {
  std::string name;
  FusionPlan plan;
  std::optional<size_t> launches{};
  std::optional<int64_t> arena{};
};

Side side_of_model(const std::string& argument, const Flags& flags) {
  GivenModel model = open_model(argument, {.inputs = flags.fixed, .fix = Fix::all});
  if (model.executable) {
    const Artifact& artifact = model.executable->artifact();
    if (artifact.plan_json.empty())
      throw fail(E::bad_option, "'{}' was compiled without a plan: there is nothing to compare", argument);
    return {argument, plan_from_json(artifact.plan_json), artifact.launches.size(), artifact.arena_bytes.constant()};
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
  Side side{argument, std::move(compilation.plan)};
  if (program) side.launches = program->launches.size(), side.arena = program->arena_bytes.constant();
  return side;
}

Side side_of(const std::string& argument, const Flags& flags) {
  if (argument.ends_with(".json")) return {argument, read_plan(argument)};
  return side_of_model(argument, flags);
}

/// "f32,bf16": of one model, what one of two flags is to be.
struct Settings {
  std::string flag;
  std::vector<std::string> values;
};

Settings settings_of(const Flags& flags) {
  const std::vector<std::string>& types = flags.plan.precision;
  const bool precision = types.size() == 1 && types[0].find(',') != std::string::npos;
  const std::string& workspace = flags.algorithms.workspace;
  if (precision == (workspace.find(',') != std::string::npos))
    throw fail(E::bad_option, "diff compares two, and only '{}' is given", flags.first)
        .hint("name another model, plan or .opf, or give several values of --precision (f32,bf16) or of --workspace");
  if (flags.first.ends_with(".json") || flags.first.ends_with(".opf"))
    throw fail(E::bad_option, "'{}' is planned already: settings are compared of a model", flags.first);
  Settings settings{precision ? "--precision" : "--workspace", {}};
  for (const auto value : std::views::split(precision ? types[0] : workspace, ','))
    settings.values.emplace_back(value.begin(), value.end());
  for (const std::string& value : settings.values)
    if (precision && value == "int8")
      throw fail(E::bad_option, "int8 needs scales, which a float model does not have")
          .hint(fmt::format("opfuse quantize {} -o q.onnx --calibrate DIR, then opfuse explain q.onnx", flags.first));
  return settings;
}

Side side_of(const Flags& flags, const std::string& flag, const std::string& value) {
  Flags one = flags;
  if (flag == "--precision")
    one.plan.precision = {value};
  else
    one.algorithms.workspace = value;
  Side side = side_of_model(flags.first, one);
  side.name = fmt::format("{} {} {}", flags.first, flag, value);
  return side;
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
          {"launches", side.launches ? Json(*side.launches) : Json(nullptr)},
          {"arena_bytes", side.arena ? Json(*side.arena) : Json(nullptr)}};
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
  std::string text = fmt::format("{}   target {}   {} groups", side.name, side.plan.target, side.plan.applied().size());
  if (side.launches) text += fmt::format(", {} launches", *side.launches);
  if (side.arena) text += fmt::format(", arena {:.2f} MB", 1e-6 * static_cast<double>(*side.arena));
  return text;
}

void print(const Side& first, const Side& second, const PlanDiff& diff, const Flags& flags) {
  fmt::print("first    {}\nsecond   {}\n{}", side_text(first), side_text(second), diff_text(diff, flags.top));
}

int exit_status(bool lost, const Flags& flags) { return flags.fail_on_lost && lost ? kCheckFailed : kOk; }

/// Each setting beside the one in front of it.
int run_settings(const Flags& flags) {
  const Settings settings = settings_of(flags);
  Json out = document("opfuse.diffs/1");
  out["diffs"] = Json::array();
  bool lost = false;
  Side first = side_of(flags, settings.flag, settings.values[0]);
  for (size_t i = 1; i < settings.values.size(); ++i) {
    Side second = side_of(flags, settings.flag, settings.values[i]);
    const PlanDiff diff = diff_plans(first.plan, second.plan);
    lost |= !diff.lost.empty();
    out["diffs"].push_back(json_of(first, second, diff));
    if (!flags.json) print(first, second, diff, flags);
    first = std::move(second);
  }
  if (flags.json) print_json(out);
  return exit_status(lost, flags);
}

int run(const Flags& flags) {
  if (flags.second.empty()) return run_settings(flags);
  const Side first = side_of(flags.first, flags), second = side_of(flags.second, flags);
  const PlanDiff diff = diff_plans(first.plan, second.plan);
  if (flags.json)
    print_json(json_of(first, second, diff));
  else
    print(first, second, diff, flags);
  return exit_status(!diff.lost.empty(), flags);
}

}  // namespace

std::function<int()> add_diff(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("A", flags->first, "a model, a plan (fuse --plan-out), or an .opf")->required();
  app.add_option(
      "B", flags->second,
      "what it is compared with: another of them; without it, --precision f32,bf16 or --workspace 0,64kB,1MB "
      "compares A as it is with each");
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
