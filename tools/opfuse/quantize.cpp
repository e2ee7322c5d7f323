// opfuse quantize: a float model to one with Q/DQ pairs, and how near the two are.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "base/read_files.hpp"
#include "console.hpp"
#include "model_arg.hpp"
#include "onnx/write.hpp"
#include "outputs.hpp"
#include "quantize/judge.hpp"
#include "quantize/report_json.hpp"
#include "quantize_flags.hpp"
#include "quantize_narrow.hpp"
#include "quantize_text.hpp"
#include "quantize_weights.hpp"
#include "report.hpp"
#include "talk.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

void check_flags(const FlagSet& app, const QuantizeFlags& flags) {
  check_companions(app, {{"--block", "--to"},
                         {"--samples", "--calibrate"},
                         {"--seed", "--calibrate"},
                         {"--max-drop", "--calibrate"},
                         {"--force", "--output"}});
  remember_read_file(flags.model);
  check_output("--output", flags.output, {".onnx"}, flags.force);
  check_output("--report", flags.report, {".json", ".html"}, false, false);
  check_output("--scales", flags.scales, {".json"}, false, false);
  check_seed(app, flags.calibrate.path);
  if (flags.dry_run && !(flags.output.empty() && flags.report.empty())) note("a dry run writes nothing");
  if (flags.dry_run) return;
  if (flags.calibrate.path.empty() && flags.scales.empty())
    throw fail(E::bad_option, "nothing to calibrate with")
        .hint("add --calibrate FOLDER (.npy or .npz files), or --dry-run to see the places alone");
}

/// A finished scales file needs no samples.
quantization::Samples calibration_samples(const QuantizeFlags& flags, const Graph& graph, const SymbolValues& dims) {
  if (!flags.calibrate.path.empty()) return samples_of(flags.calibrate, flags.pictures, graph, dims);
  quantization::Samples none;
  none.read = [](size_t) -> std::optional<std::vector<Tensor>> { return std::nullopt; };
  return none;
}

quantization::JudgeChoice choice_of(const QuantizeFlags& flags) {
  return {.compare_samples = flags.compare_samples,
          .metric = {.name = flags.metric},
          .max_drop = flags.max_drop,
          .lower_bound = flags.lower_bound};
}

int print_places(const QuantizeFlags& flags, const quantization::QuantizedModel& placed,
                 const quantization::QuantizeOptions& options) {
  if (!flags.json) {
    print_placement(placed, options, true);
    return kOk;
  }
  Json out = document("opfuse.quantize/1");
  out["model"] = flags.model;
  out.update(quantization::report_json(placed, options, std::nullopt));
  print_json(out);
  return kOk;
}

void print_judged(const QuantizeFlags& flags, const quantization::JudgedModel& judged,
                  const quantization::QuantizeOptions& options) {
  print_quantized(judged.made, options, judged.agreement, flags);
  if (judged.search) print_search(*judged.search, flags.metric);
  if (judged.metric)
    fmt::print("metric   {}: {:g}, of the float model {:g}\n", judged.metric->name, judged.metric->of_codes,
               judged.metric->of_float);
}

int run(const FlagSet& app, const QuantizeFlags& flags) {
  if (flags.to.ends_with("-weights")) return code_weights_alone(app, flags);
  if (!flags.to.empty()) return convert_floats(app, flags);
  check_flags(app, flags);
  const GivenModel model = open_graph(flags.model, "quantize");
  const Graph& graph = *model.graph;
  const SymbolValues dims = given_dimensions(graph, flags.dimensions);
  const quantization::QuantizeOptions options = quantize_options(flags, dims);
  check_choice(choice_of(flags));
  if (flags.dry_run) return print_places(flags, quantization::place_graph(graph, options), options);
  const quantization::Samples samples = calibration_samples(flags, graph, dims);
  std::optional<quantization::Samples> others;
  if (!flags.evaluate.empty())
    others = samples_of({.path = flags.evaluate, .seed = flags.calibrate.seed}, flags.pictures, graph, dims);
  const quantization::Samples* judging = others ? &*others : flags.calibrate.path.empty() ? nullptr : &samples;
  const quantization::JudgedModel judged =
      quantization::quantize_and_judge(graph, samples, judging, options, choice_of(flags));
  finish_progress();
  Json out = document("opfuse.quantize/1");
  out.update({{"model", flags.model}, {"output", flags.output}, {"seconds", judged.seconds}});
  out.update(quantization::report_json(judged, options));
  out["evaluated_with"] = flags.evaluate.empty() ? flags.calibrate.path : flags.evaluate;
  if (!flags.output.empty()) write_onnx(judged.made.graph, flags.output, options_of_file(flags));
  if (!flags.report.empty()) quantization::write_report(flags.report, out);
  if (flags.json)
    print_json(out);
  else
    print_judged(flags, judged, options);
  for (const std::string& path : {flags.output, flags.report})
    if (!path.empty()) say(fmt::format("wrote {}", path));
  if (!flags.json && !flags.output.empty())
    say(fmt::format("next: opfuse explain {} says which modules compute with codes", flags.output));
  return kOk;
}

}  // namespace

std::function<int()> add_quantize(FlagSet& app) {
  auto flags = std::make_shared<QuantizeFlags>();
  app.add_option("MODEL", flags->model, kModelHelp)->required();
  add_quantize_flags(app, *flags);
  return [flags, &app] { return run(app, *flags); };
}

}  // namespace opfuse::cli
