// opfuse compare: the proof of equality. Every compiled group alone, fed the interpreter's tensors; then the whole
// model, with the change that another input causes beside each error, so that a small error can be told from a dead
// output.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "compile_model.hpp"
#include "console.hpp"
#include "driver/compare_chain.hpp"
#include "inputs.hpp"
#include "interrupt.hpp"
#include "model_arg.hpp"
#include "outputs.hpp"
#include "report.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

struct Flags {
  std::string model, against;
  InputFlags inputs;
  CompileFlags compile;
  double group_tolerance = CompareOptions{}.group_tolerance, output_tolerance = CompareOptions{}.output_tolerance;
  bool unfused = false, outputs_only = false, verbose = false, json = false;
};

double share(const OutputComparison& output) {
  return output.change > 0 ? output.difference.relative() / output.change : 0;
}

void print_ties(const Comparison& c) {
  int64_t ties = 0;
  size_t groups = 0;
  for (const GroupComparison& g : c.groups) ties += g.ties, groups += g.ties > 0;
  fmt::print(
      "rounding {} elements of {} groups are one step off, their values before rounding on ties\n"
      "         each group read what the groups before it stored; outputs must be the last groups' bit for bit\n",
      ties, groups);
}

void print_text(const Comparison& c, const Flags& flags) {
  Table table({"group", "output", ">max|d|", ">of max", ">mean|d|", "", "nodes"});
  size_t failed = 0;
  for (const GroupComparison& g : c.groups) {
    failed += !g.ok;
    if (g.ok && !flags.verbose) continue;
    table.row({g.name, g.output, fmt::format("{:.2g}", g.difference.max_abs),
               fmt::format("{:.2g}", g.difference.relative()), fmt::format("{:.2g}", g.difference.mean_abs),
               g.ok             ? "ok"
               : g.padding_zero ? "FAILED"
                                : "FAILED: padding lanes not zero",
               listed(g.sources, 3)});
  }
  if (failed > 0 || (flags.verbose && !c.groups.empty())) fmt::print("{}", table.text());
  if (!c.groups.empty()) {
    const GroupComparison* worst = c.worst();
    fmt::print("groups   {} compared, {} outside {:g} of their max; worst {:.2g} at {}\n", c.groups.size(), failed,
               flags.group_tolerance, worst->difference.relative(), worst->name);
  }
  if (c.chained) print_ties(c);
  for (const OutputComparison& o : c.outputs) {
    fmt::print("output   {}: max|d| {:.2g}, {:.2g} of max", o.name, o.difference.max_abs, o.difference.relative());
    if (o.change > 0)
      fmt::print("; another input changes it by {} of max, the error is {:.1e} of that", percent(o.change), share(o));
    if (c.chained) fmt::print("; {:.2g} of max from the interpreter, whose roundings differ", o.from_interpreter);
    fmt::print("   {}\n", o.ok ? "ok" : "FAILED");
  }
  fmt::print("{}\n", c.ok() ? "PASSED" : "FAILED");
}

Json to_json(const Comparison& c, const Flags& flags) {
  Json out = document("opfuse.compare/1");
  out.update({{"model", flags.model},
              {"against", flags.against},
              {"seed", flags.inputs.seed},
              {"ok", c.ok()},
              {"chained", c.chained},
              {"group_tolerance", flags.group_tolerance},
              {"output_tolerance", flags.output_tolerance}});
  Json groups = Json::array(), outputs = Json::array();
  for (const GroupComparison& g : c.groups)
    groups.push_back({{"group", g.name},
                      {"pattern", g.pattern},
                      {"output", g.output},
                      {"max_abs", g.difference.max_abs},
                      {"relative", g.difference.relative()},
                      {"mean_abs", g.difference.mean_abs},
                      {"padding_zero", g.padding_zero},
                      {"ties", g.ties},
                      {"ok", g.ok},
                      {"nodes", g.sources}});
  for (const OutputComparison& o : c.outputs)
    outputs.push_back({{"output", o.name},
                       {"max_abs", o.difference.max_abs},
                       {"relative", o.difference.relative()},
                       {"change_by_other_input", o.change},
                       {"share_of_change", share(o)},
                       {"from_interpreter", o.from_interpreter},
                       {"ok", o.ok}});
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
    if (second) output.change = difference(changed[i], want[i]).relative();
    output.ok = output.difference.relative() <= options.output_tolerance;
    outputs.push_back(std::move(output));
  }
  return outputs;
}

int report(const Comparison& comparison, const Flags& flags) {
  finish_progress();
  if (flags.json)
    print_json(to_json(comparison, flags));
  else
    print_text(comparison, flags);
  return comparison.ok() ? kOk : kCheckFailed;
}

int run(const CLI::App& app, Flags flags) {
  check_companions(app, {{"--allow-stale", "--plan"}});
  if (flags.unfused) refuse_plan_flags(app, "--unfused has the empty plan");
  bound_threads(flags.compile);
  const GivenModel model = open_graph(flags.model, "compare");
  const ModelInputs inputs = make_inputs(*model.graph, flags.inputs);
  const std::optional<ModelInputs> second = other_inputs(*model.graph, flags.inputs, inputs);
  const Compiled compiled = flags.unfused ? compile_unfused(*model.graph, inputs.symbols, flags.compile)
                                          : compile_fused(*model.graph, inputs.symbols, flags.compile);
  show_limits(compiled);
  CompareOptions options{flags.group_tolerance, flags.output_tolerance, flags.compile.threads, show_progress};
  Comparison comparison;
  if (flags.against.empty()) {
    if (quantises(compiled.fused)) {
      comparison = compare_chain(compiled.fused, compiled.program, compiled.executable, inputs.tensors,
                                 second ? second->tensors : std::vector<Tensor>{}, options);
      return report(comparison, flags);
    }
    if (!flags.outputs_only)
      comparison.groups =
          compare_groups(compiled.fused, compiled.program, compiled.executable, inputs.tensors, options);
    comparison.outputs = compare_outputs(*model.graph, compiled.executable, inputs.tensors,
                                         second ? second->tensors : std::vector<Tensor>{}, options);
  } else {
    comparison.outputs = compare_with(*open_graph(flags.against, "compare").graph, *model.graph, compiled.executable,
                                      inputs, second, options);
  }
  return report(comparison, flags);
}

}  // namespace

std::function<int()> add_compare(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model, kModelHelp)->required();
  app.add_option("--against", flags->against, "another model that must give the same outputs")->type_name("MODEL");
  app.add_option("--group-tolerance", flags->group_tolerance, "largest error of a group, of its output's max")
      ->capture_default_str();
  app.add_option("--output-tolerance", flags->output_tolerance, "largest error of a model output, of its max")
      ->capture_default_str();
  app.add_flag("--outputs-only", flags->outputs_only, "do not compare group by group");
  app.add_flag("--unfused", flags->unfused, "compare the unfused program");
  app.add_flag("-v,--verbose", flags->verbose, "list every group");
  add_input_flags(app, flags->inputs);
  add_compile_flags(app, flags->compile);
  app.add_flag("--json", flags->json, "as JSON");
  return [flags, &app] { return run(app, *flags); };
}

}  // namespace opfuse::cli
