// opfuse run: a model or an .opf on given or random inputs; writes outputs, checks them against expected arrays.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "compile_model.hpp"
#include "console.hpp"
#include "inputs.hpp"
#include "interp/interpreter.hpp"
#include "interrupt.hpp"
#include "model_arg.hpp"
#include "onnx/tensor_files.hpp"
#include "outputs.hpp"
#include "report.hpp"
#include "session.hpp"
#include "talk.hpp"
#include "variant_flags.hpp"
#include "verb.hpp"
#include "written_arrays.hpp"

namespace opfuse::cli {
namespace {

struct Flags {
  std::string model;
  ArrayFlags arrays;
  InputFlags inputs;
  CompileFlags compile;
  std::vector<std::string> expect;
  double atol = 1e-5, rtol = 1e-5;
  bool reference = false, json = false;
};

using Outputs = std::vector<NamedTensor>;

/// At the sizes that are run, as compiling does: some windows are larger than an open extent may be.
Outputs run_reference(const Graph& graph, const ModelInputs& inputs) {
  Graph bound = graph.clone();
  bound.bind_dimensions(inputs.symbols);
  const std::vector<Tensor> results = interpret(bound, inputs.tensors, {.symbols = inputs.symbols});
  Outputs outputs;
  for (size_t i = 0; i < results.size(); ++i) outputs.emplace_back(graph.outputs()[i]->name, results[i]);
  return outputs;
}

Outputs run_compiled(const GivenModel& model, const ModelInputs& inputs, const Flags& flags) {
  std::optional<Executable> executable = model.executable;
  if (!executable) {
    Compiled compiled = compile_fused(*model.graph, inputs.symbols, flags.compile);
    show_limits(compiled);
    executable = compiled.executable;
  } else {
    show_limits(*executable);
  }
  ContextOptions options;
  options.threads = flags.compile.threads;
  options.progress = [](size_t, size_t) { return !interrupted(); };
  Session session(*executable, inputs, std::move(options));
  note_variant(*executable, session.context());
  session.context().run();
  Outputs outputs;
  const std::vector<Tensor> tensors = session.outputs();
  for (size_t i = 0; i < tensors.size(); ++i) outputs.emplace_back(session.output_names()[i], tensors[i]);
  return outputs;
}

struct Verdict {
  std::string name;
  Difference difference;
  int64_t outside = 0;  ///< elements with |d| > atol + rtol * |expected|
};

/// Infinities and NaNs equal themselves only: |d| and the tolerance of an infinity are both infinite.
bool as_expected(double got, double want, const Flags& flags) {
  if (std::isnan(want)) return std::isnan(got);
  if (!std::isfinite(want) || !std::isfinite(got)) return got == want;
  return std::abs(got - want) <= flags.atol + flags.rtol * std::abs(want);
}

Verdict check(const std::string& name, const Tensor& got, const Tensor& want, const Flags& flags) {
  if (got.sizes() != want.sizes())
    throw fail(E::bad_binding, "output '{}' is {}, but {} is expected", name, got.type().text(), want.type().text());
  Verdict verdict{name, difference(got, want), 0};
  for (int64_t i = 0, n = got.elements(); i < n; ++i)
    if (!as_expected(got.real(i), want.real(i), flags)) ++verdict.outside;
  return verdict;
}

std::vector<Verdict> check_expected(const Outputs& outputs, const Flags& flags) {
  NamedTypes known;
  for (const auto& [name, tensor] : outputs) known.emplace_back(name, tensor.type());
  const NamedTensors expected = read_arrays(flags.expect, known, "--expect");
  std::vector<Verdict> verdicts;
  for (const auto& [name, tensor] : outputs)
    if (const auto want = expected.find(name); want != expected.end())
      verdicts.push_back(check(name, tensor, want->second, flags));
  return verdicts;
}

Json json_of(const Tensor& tensor) {
  double low = 0, high = 0, sum = 0;
  const int64_t n = tensor.elements();
  for (int64_t i = 0; i < n; ++i) {
    const double value = tensor.real(i);
    low = i == 0 ? value : std::min(low, value);
    high = i == 0 ? value : std::max(high, value);
    sum += value;
  }
  return {{"type", tensor.type().text()}, {"min", low}, {"max", high}, {"mean", n ? sum / static_cast<double>(n) : 0}};
}

void print_report(const Outputs& outputs, const std::vector<Verdict>& verdicts, const Flags& flags) {
  Json tensors = Json::object(), checks = Json::array();
  for (const auto& [name, tensor] : outputs) tensors[name] = json_of(tensor);
  for (const Verdict& v : verdicts)
    checks.push_back(
        {{"output", v.name}, {"max_abs", v.difference.max_abs}, {"outside", v.outside}, {"ok", v.outside == 0}});
  if (flags.json) {
    Json out = document("opfuse.run/1");
    out["model"] = flags.model;
    out["seed"] = flags.inputs.seed;
    out["outputs"] = std::move(tensors);
    out["expected"] = std::move(checks);
    print_json(out);
    return;
  }
  Table table({"output", "type", ">min", ">max", ">mean"});
  for (const auto& [name, row] : tensors.items())
    table.row({name, row["type"].get<std::string>(), fmt::format("{:.6g}", row["min"].get<double>()),
               fmt::format("{:.6g}", row["max"].get<double>()), fmt::format("{:.6g}", row["mean"].get<double>())});
  fmt::print("{}", table.text());
  for (const Verdict& v : verdicts)
    fmt::print("  {}: max|d| {:.3g} at {}, {} elements outside {:g} + {:g} * |expected|  {}\n", v.name,
               v.difference.max_abs, v.difference.at, v.outside, flags.atol, flags.rtol, v.outside ? "FAILED" : "ok");
}

void check_flags(const FlagSet& app, const GivenModel& model, const Flags& flags) {
  check_companions(app, {{"--atol", "--expect"}, {"--rtol", "--expect"}, {"--allow-stale", "--plan"}});
  if (model.executable) refuse_compile_flags(app, flags.model);
  if (flags.reference) refuse_compile_flags_of_reference(app);
}

int run(const FlagSet& app, Flags flags) {
  catch_interrupts();
  for (double tolerance : {flags.atol, flags.rtol})
    if (!(tolerance >= 0 && std::isfinite(tolerance)))
      throw fail(E::bad_option, "--atol and --rtol are finite and not negative, not {}", tolerance);
  const GivenModel model = open_model(flags.model, {.inputs = flags.inputs.files});
  check_flags(app, model, flags);
  bound_threads(flags.compile);
  if (flags.reference && !model.graph)
    throw fail(E::bad_option, "--reference needs the model, an .opf holds only its machine code");
  const ModelInputs inputs = make_inputs(model.interface(), flags.inputs);
  check_array_flags(app, flags.arrays,
                    model.executable ? model.executable->outputs().size() : model.graph->outputs().size());
  const Outputs outputs = flags.reference ? run_reference(*model.graph, inputs) : run_compiled(model, inputs, flags);
  const std::vector<Verdict> verdicts = check_expected(outputs, flags);
  Outputs given;
  for (size_t i = 0; i < inputs.tensors.size(); ++i)
    given.emplace_back(model.interface().inputs()[i]->name, inputs.tensors[i]);
  write_arrays(flags.arrays, outputs, given);
  print_report(outputs, verdicts, flags);
  for (const Verdict& verdict : verdicts)
    if (verdict.outside > 0) return kCheckFailed;
  return exit_code(kOk);
}

}  // namespace

std::function<int()> add_run(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model, kModelOrOpfHelp)->required();
  add_input_flags(app, flags->inputs);
  add_array_flags(app, flags->arrays);
  app.add_option("--expect", flags->expect, "array an output must equal; exit 1 when it does not")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  app.add_option("--atol", flags->atol, "absolute tolerance of --expect")->capture_default_str();
  app.add_option("--rtol", flags->rtol, "relative tolerance of --expect")->capture_default_str();
  app.add_flag("--reference", flags->reference, "run the interpreter (exact, in double precision), compile nothing");
  add_compile_flags(app, flags->compile);
  app.add_flag("--json", flags->json, "as JSON");
  return [flags, &app] {
    take_plan(flags->inputs.dimensions, flags->compile.plan);
    return run(app, *flags);
  };
}

}  // namespace opfuse::cli
