// opfuse compare: the proof of equality. Every compiled group alone, on the numbers of a run and on drawn ones; then
// the whole model, with the change that another input causes beside each error, so that a small error can be told from
// a dead output. Open dimensions stay open: what is compiled for all sizes is proven at drawn ones.
#include "proof/compare.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/fail.hpp"
#include "compare_layers.hpp"
#include "compile_model.hpp"
#include "console.hpp"
#include "inputs.hpp"
#include "interrupt.hpp"
#include "ir/dim_constraints.hpp"
#include "model_arg.hpp"
#include "outputs.hpp"
#include "proof/conditioning.hpp"
#include "proof/drawn_sizes.hpp"
#include "report.hpp"
#include "runtime/artifact.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

constexpr double kAgainstTolerance = 1e-4;

struct Flags {
  std::string model, against;
  InputFlags inputs;
  CompileFlags compile;
  LayerFlags layers;
  std::optional<double> group_tolerance, output_tolerance;
  double most_unclaimed = kMostUnclaimed;
  bool unfused = false, outputs_only = false, verbose = false, json = false;
};

/// Proofs at one or several sizes.
struct Report {
  std::vector<Comparison> runs;
  std::vector<std::string> rejected;  ///< sizes drawn in vain
  bool drawn = false;
  bool ok() const {
    return !runs.empty() && std::all_of(runs.begin(), runs.end(), [](const Comparison& c) { return c.ok(); });
  }
};

double share(const OutputComparison& output) {
  return output.change > 0 ? output.difference.relative() / output.change : 0;
}

std::string verdict(const GroupComparison& g) {
  if (g.ok) return "ok";
  if (!g.problem.empty()) return "FAILED: " + g.problem;
  if (!g.padding_zero) return "FAILED: padding lanes not zero";
  if (g.mostly_unclaimed)
    return fmt::format("FAILED: not proven, {} of {} elements are off and have no bound (--max-unclaimed)",
                       g.real.not_judged(), g.real.elements);
  if (g.off_law.value_or(0) > 0)
    return fmt::format("FAILED: {} of {} codes are not those of the law of requantising (docs/accuracy.md)", *g.off_law,
                       g.real.elements);
  const bool exact = !g.exact.ok();
  const Proof& proof = exact ? g.exact : g.real;
  if (proof.ok()) return "FAILED";
  return fmt::format("FAILED: {} of {} {}, worst [{}]: {:.9g}, not {:.9g} +- {:.2g}", proof.outside, proof.elements,
                     exact ? "drawn" : "real", proof.at, proof.got, proof.want, proof.bound);
}

void print_groups(const Comparison& c, const Flags& flags) {
  Table table({"group", "output", ">max|d|", ">of max", ">of bound", ">worst case", ">drawn: exact", "", "nodes"});
  bool any = false;
  for (const GroupComparison& g : c.groups) {
    if (g.ok && !flags.verbose) continue;
    any = true;
    const double exact = g.exact.elements > 0 ? double(g.exact.exact) / double(g.exact.elements) : 0;
    table.row({g.name, g.output, fmt::format("{:.2g}", g.difference.max_abs),
               fmt::format("{:.2g}", g.difference.relative()), fmt::format("{:.2g}", g.real.of_bound),
               fmt::format("{:.0f} bounds", g.real.worst_case), percent(exact), verdict(g), listed(g.sources, 3)});
  }
  if (any) fmt::print("{}", table.text());
}

void print_not_judged(const char* numbers, const Proof& p) {
  if (p.typed > 0)
    fmt::print(
        "types    {} elements of {} numbers judged in their own type: overflow, or a mask that swallows scores\n",
        p.typed, numbers);
  if (p.unclaimed > 0)
    fmt::print("unjudged {} elements of {} numbers: no bound (overflow, a divisor that may be 0)\n", p.unclaimed,
               numbers);
  if (p.vague > 0)
    fmt::print(
        "unjudged {} elements of {} numbers: a bound above {} of the largest (terms that cancel, swallowed scores)\n",
        p.vague, numbers, percent(kVague));
}

void print_totals(const Comparison& c) {
  Proof real, exact;
  size_t failed = 0, with_ties = 0, lawful = 0, requantised = 0;
  for (const GroupComparison& g : c.groups) {
    real.merge(g.real), exact.merge(g.exact);
    failed += !g.ok, with_ties += g.ties > 0;
    requantised += g.off_law.has_value(), lawful += g.off_law == 0;
  }
  const GroupComparison* worst = c.worst();
  const bool drawn = worst->exact.of_bound > worst->real.of_bound;
  fmt::print("groups   {} compared, {} failed; {} numbers: worst {:.2g} of its bound at {}\n", c.groups.size(), failed,
             drawn ? "drawn" : "real", (drawn ? worst->exact : worst->real).of_bound, worst->name);
  fmt::print("         drawn numbers: {} elements, {} had to be exact and {} were not\n", exact.elements, exact.exact,
             exact.outside);
  if (requantised > 0)
    fmt::print("         requantised: {} of {} groups that sum codes have the law's bits in every element\n", lawful,
               requantised);
  if (real.ties > 0)
    fmt::print("rounding {} elements of {} groups are one step off, their values before rounding on ties\n", real.ties,
               with_ties);
  print_not_judged("real", real);
  print_not_judged("drawn", exact);
}

void print_output(const OutputComparison& o) {
  fmt::print("output   {}: max|d| {:.2g}, {:.2g} of max", o.name, o.difference.max_abs, o.difference.relative());
  if (o.conditioning > 0) {
    if (o.judged)
      fmt::print("; {:.2g} is allowed by its conditioning", kConditioningFactor * o.conditioning);
    else if (!o.tie_at.empty())
      fmt::print(" from the interpreter, not judged (a tie of {}, decided by what groups before it rounded)", o.tie_at);
    else
      fmt::print(
          " from the interpreter, not judged (integers, roundings that ties decided, or overflow and swallowed "
          "scores)");
    if (o.precision > 0) fmt::print(", {:.2g} more by rounded weights", o.precision);
    fmt::print("; its bits are {}those of the groups", o.same_as_groups ? "" : "NOT ");
  }
  if (o.change > 0)
    fmt::print("; another input changes it by {} of max, the error is {:.1e} of that", percent(o.change), share(o));
  fmt::print("   {}\n", o.ok ? "ok" : "FAILED");
}

void print_text(const Report& report, const Flags& flags) {
  for (const Comparison& c : report.runs) {
    if (report.drawn) fmt::print("sizes    {}\n", text_of(c.sizes));
    print_groups(c, flags);
    if (!c.groups.empty()) print_totals(c);
    for (const OutputComparison& o : c.outputs) print_output(o);
  }
  for (const std::string& why : report.rejected) fmt::print("redrawn  {}\n", why);
  if (report.drawn && report.runs.size() < 3)
    fmt::print("sizes    {} of 3 found that the model accepts\n", report.runs.size());
  fmt::print("{}\n", report.ok() ? "PASSED" : "FAILED");
}

Json to_json(const Proof& p) {
  return {{"elements", p.elements},   {"exact", p.exact},           {"outside", p.outside},
          {"unclaimed", p.unclaimed}, {"vague", p.vague},           {"typed", p.typed},
          {"of_bound", p.of_bound},   {"worst_case", p.worst_case}, {"ok", p.ok()}};
}

Json to_json(const GroupComparison& g, const Json& sizes) {
  return {{"group", g.name},
          {"pattern", g.pattern},
          {"output", g.output},
          {"sizes", sizes},
          {"max_abs", g.difference.max_abs},
          {"relative", g.difference.relative()},
          {"mean_abs", g.difference.mean_abs},
          {"real", to_json(g.real)},
          {"drawn", to_json(g.exact)},
          {"padding_zero", g.padding_zero},
          {"requantised", g.off_law ? Json{{"off", *g.off_law}} : Json(nullptr)},
          {"ties", g.ties},
          {"mostly_unclaimed", g.mostly_unclaimed},
          {"problem", g.problem},
          {"ok", g.ok},
          {"nodes", g.sources}};
}

Json to_json(const OutputComparison& o, const Json& sizes) {
  return {{"output", o.name},
          {"sizes", sizes},
          {"max_abs", o.difference.max_abs},
          {"relative", o.difference.relative()},
          {"precision", o.precision},
          {"conditioning", o.conditioning},
          {"judged", o.judged},
          {"tie_at", o.tie_at},
          {"same_as_groups", o.same_as_groups},
          {"change_by_other_input", o.change},
          {"share_of_change", share(o)},
          {"ok", o.ok}};
}

Json to_json(const Report& report, const Flags& flags) {
  Json out = document("opfuse.compare/2");
  Json groups = Json::array(), outputs = Json::array(), sizes = Json::array();
  for (const Comparison& c : report.runs) {
    const Json at = json_of(c.sizes);
    if (report.drawn) sizes.push_back(at);
    for (const GroupComparison& g : c.groups) groups.push_back(to_json(g, at));
    for (const OutputComparison& o : c.outputs) outputs.push_back(to_json(o, at));
  }
  out.update({{"model", flags.model},
              {"against", flags.against},
              {"seed", flags.inputs.seed},
              {"ok", report.ok()},
              {"sizes", sizes},
              {"redrawn", report.rejected},
              {"group_tolerance", flags.group_tolerance ? Json(*flags.group_tolerance) : Json()},
              {"output_tolerance", flags.output_tolerance ? Json(*flags.output_tolerance) : Json()}});
  out["groups"] = std::move(groups);
  out["outputs"] = std::move(outputs);
  return out;
}

/// The reference graph's inputs: by name, else by position.
std::vector<Tensor> inputs_for(const Graph& other, const Graph& graph, const std::vector<Tensor>& inputs) {
  if (other.inputs().size() != inputs.size() || other.outputs().size() != graph.outputs().size())
    throw fail(E::bad_option, "the models have {} inputs and {} outputs against {} and {}", inputs.size(),
               graph.outputs().size(), other.inputs().size(), other.outputs().size());
  std::vector<Tensor> ordered = inputs;
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t j = 0; j < inputs.size(); ++j)
      if (other.inputs()[i]->name == graph.inputs()[j]->name) ordered[i] = inputs[j];
  return ordered;
}

std::vector<OutputComparison> compare_with(const Graph& other, const Graph& graph, const Executable& executable,
                                           const ModelInputs& inputs, const std::optional<ModelInputs>& second,
                                           const CompareOptions& options) {
  const std::vector<Tensor> got = run_executable(executable, inputs.tensors, {options.threads});
  const std::vector<Tensor> want = interpret(other, inputs_for(other, graph, inputs.tensors));
  std::vector<Tensor> changed;
  if (second) changed = interpret(other, inputs_for(other, graph, second->tensors));
  std::vector<OutputComparison> outputs;
  for (size_t i = 0; i < got.size(); ++i) {
    OutputComparison output;
    output.name = graph.outputs()[i]->name;
    if (got[i].sizes() != want[i].sizes())
      throw fail(E::shape_mismatch, "output '{}' is {} here and {} in the other model", output.name,
                 got[i].type().text(), want[i].type().text());
    output.difference = difference(got[i], want[i]);
    if (second && changed[i].sizes() == want[i].sizes())  // a run may find other sizes
      output.change = difference(changed[i], want[i]).relative();
    output.ok = output.difference.relative() <= options.output_tolerance.value_or(kAgainstTolerance);
    outputs.push_back(std::move(output));
  }
  return outputs;
}

CompareOptions compare_options(const Flags& flags) {
  CompareOptions options;
  options.group_tolerance = flags.group_tolerance;
  options.output_tolerance = flags.output_tolerance;
  options.most_unclaimed = flags.most_unclaimed;
  options.threads = flags.compile.threads;
  options.progress = show_progress;
  options.seed = flags.inputs.seed;
  return options;
}

Compiled compiled_for(const GivenModel& model, const SymbolValues& sizes, const Flags& flags) {
  Compiled compiled = flags.unfused ? compile_unfused(*model.graph, sizes, flags.compile)
                                    : compile_fused(*model.graph, sizes, flags.compile);
  show_limits(compiled);
  return compiled;
}

/// The program that runs at these sizes is the one that is proved: the one that stretches where an operand does.
Comparison compare_running(const Graph& model, const Compiled& compiled, const ModelInputs& inputs,
                           const std::vector<Tensor>& others, CompareOptions options) {
  const Artifact& artifact = compiled.executable.artifact();
  const ArtifactProgram* runs = &artifact.program_for(inputs.symbols);
  for (size_t i = 0; i < artifact.variants.size(); ++i)
    if (runs == &artifact.variants[i]) {
      options.variant = static_cast<int>(i);
      return compare_model(model, *compiled.variants[i].graph, compiled.variants[i].program, compiled.executable,
                           inputs.tensors, others, options);
    }
  return compare_model(model, compiled.fused, compiled.program, compiled.executable, inputs.tensors, others, options);
}

Comparison prove_at(const GivenModel& model, const Compiled& compiled, const InputFlags& input_flags,
                    const Flags& flags) {
  const CompareOptions options = compare_options(flags);
  const ModelInputs inputs = make_inputs(*model.graph, input_flags);
  const std::optional<ModelInputs> second = other_inputs(*model.graph, input_flags, inputs);
  const std::vector<Tensor> others = second ? second->tensors : std::vector<Tensor>{};
  Comparison comparison;
  if (flags.outputs_only)
    comparison.outputs = compare_outputs(*model.graph, compiled.executable, inputs.tensors, others, options);
  else
    comparison = compare_running(*model.graph, compiled, inputs, others, options);
  comparison.sizes = inputs.symbols;
  return comparison;
}

InputFlags at_sizes(const InputFlags& flags, const SymbolValues& sizes) {
  InputFlags sized = flags;
  sized.dimensions = {};
  for (const auto& [name, size] : sizes) sized.dimensions.dims.push_back(fmt::format("{}={}", name, size));
  return sized;
}

/// At a size of 1 a model may divide by 0 (a coordinate by the extent less 1): nothing is proven or disproven there.
std::string proves_nothing(const Comparison& c) {
  const bool one = std::any_of(c.sizes.begin(), c.sizes.end(), [](const auto& size) { return size.second == 1; });
  const GroupComparison* vague = nullptr;
  for (const GroupComparison& g : c.groups)
    if (!g.ok) {
      const bool else_right = g.real.ok() && g.exact.ok() && g.problem.empty() && g.padding_zero;
      if (!g.mostly_unclaimed || !else_right || g.off_law.value_or(0) != 0) return {};
      vague = &g;
    }
  const bool outputs = std::all_of(c.outputs.begin(), c.outputs.end(), [](const OutputComparison& o) { return o.ok; });
  if (!one || !vague || !outputs) return {};
  return fmt::format("{} of {} elements of {} have no bound (overflow, or a divisor that may be 0)",
                     vague->real.not_judged(), vague->real.elements, vague->name);
}

/// Draws sizes until three are legal: the model's shapes fit, its operators and kernels accept them.
Report prove_open(const GivenModel& model, const SymbolValues& known, const std::set<std::string>& open,
                  const Flags& flags) {
  const Compiled compiled = compiled_for(model, known, flags);
  Report report;
  report.drawn = true;
  std::optional<Comparison> vague;  // reported if no other sizes are found
  const auto refused = [&](const SymbolValues& sizes) -> std::string {
    try {
      check_given(compiled.executable.artifact().constraints, sizes);
      Graph bound = model.graph->clone();
      bound.bind_dimensions(sizes);
      Comparison comparison = prove_at(model, compiled, at_sizes(flags.inputs, sizes), flags);
      std::string nothing = proves_nothing(comparison);
      if (nothing.empty())
        report.runs.push_back(std::move(comparison));
      else
        vague = std::move(comparison);
      return nothing;
    } catch (const Error& error) {
      const std::string& name = error.diagnostic().name;
      if (name == "internal" || name == "unsupported_cpu") throw;  // whatever the sizes are
      return error.diagnostic().message;
    }
  };
  report.rejected =
      draw_sizes(open, known, flags.inputs.seed, refused, compiled.executable.artifact().constraints).rejected;
  if (vague && report.runs.size() < 3) report.runs.push_back(std::move(*vague));
  return report;
}

Report prove(const GivenModel& model, const Flags& flags) {
  Report report;
  if (!flags.against.empty()) {
    const ModelInputs inputs = make_inputs(*model.graph, flags.inputs);
    const std::optional<ModelInputs> second = other_inputs(*model.graph, flags.inputs, inputs);
    const Compiled compiled = compiled_for(model, inputs.symbols, flags);
    report.runs.emplace_back().outputs = compare_with(*open_graph(flags.against, "compare").graph, *model.graph,
                                                      compiled.executable, inputs, second, compare_options(flags));
    return report;
  }
  const SymbolValues known = known_dimensions(*model.graph, flags.inputs);
  std::set<std::string> open = model.graph->symbols();
  for (const auto& [name, size] : known) open.erase(name);
  if (!open.empty()) return prove_open(model, known, open, flags);
  report.runs.push_back(prove_at(model, compiled_for(model, known, flags), flags.inputs, flags));
  return report;
}

int run(const FlagSet& app, Flags flags) {
  check_companions(
      app, {{"--allow-stale", "--plan"}, {"--data", "--against"}, {"--samples", "--data"}, {"--least-sqnr", "--data"}});
  if (!flags.layers.data.path.empty()) {
    refuse_flags(app,
                 {"--input", "--range", "--unfused", "--outputs-only", "--group-tolerance", "--output-tolerance",
                  "--max-unclaimed", "--plan", "--only", "--skip", "--target"},
                 "--data compares two models on samples, on this machine", "leave it out");
    flags.layers.data.seed = flags.inputs.seed;
    return compare_layers(flags.model, flags.against, flags.layers, flags.inputs.dimensions, flags.compile,
                          flags.verbose, flags.json);
  }
  if (flags.unfused) refuse_plan_flags(app, "--unfused has the empty plan");
  bound_threads(flags.compile);
  const GivenModel model = open_graph(flags.model, "compare", {.inputs = flags.inputs.files});
  const Report report = prove(model, flags);
  finish_progress();
  if (flags.json)
    print_json(to_json(report, flags));
  else
    print_text(report, flags);
  return report.ok() ? kOk : kCheckFailed;
}

}  // namespace

std::function<int()> add_compare(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model, kModelHelp)->required();
  app.add_option("--against", flags->against, "another model that must give the same outputs")->type_name("MODEL");
  add_layer_flags(app, flags->layers);
  app.add_option("--group-tolerance", flags->group_tolerance,
                 "largest error of a group, of its output's max, instead of the bound of each element");
  app.add_option("--output-tolerance", flags->output_tolerance,
                 "largest error of a model output, of its max, instead of what its conditioning allows");
  app.add_option("--max-unclaimed", flags->most_unclaimed,
                 "share of a group's elements that may be off without a bound (overflow, a divisor that may be 0)")
      ->type_name("SHARE")
      ->capture_default_str();
  app.add_flag("--outputs-only", flags->outputs_only, "do not compare group by group");
  app.add_flag("--unfused", flags->unfused, "compare the unfused program");
  app.add_flag("-v,--verbose", flags->verbose, "list every group");
  add_input_flags(app, flags->inputs);
  add_compile_flags(app, flags->compile);
  app.add_flag("--json", flags->json, "as JSON");
  return [flags, &app] {
    take_plan(flags->inputs.dimensions, flags->compile.plan);
    return run(app, *flags);
  };
}

}  // namespace opfuse::cli
