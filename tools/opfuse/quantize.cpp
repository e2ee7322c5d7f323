// opfuse quantize: a float model to one with Q/DQ pairs, and how near the two are.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "base/stopwatch.hpp"
#include "console.hpp"
#include "metric.hpp"
#include "model_arg.hpp"
#include "onnx/write.hpp"
#include "outputs.hpp"
#include "quantize/agreement.hpp"
#include "quantize/report_json.hpp"
#include "quantize_flags.hpp"
#include "quantize_text.hpp"
#include "report.hpp"
#include "talk.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

void check_flags(const FlagSet& app, const QuantizeFlags& flags) {
  check_companions(app, {{"--samples", "--calibrate"}, {"--seed", "--calibrate"}, {"--force", "--output"}});
  check_output("--output", flags.output, {".onnx"}, flags.force);
  check_output("--report", flags.report, {".json", ".html"}, false);
  check_output("--scales", flags.scales, {".json"}, false);
  if (!flags.metric.empty() && flags.compare_samples == 0)
    throw fail(E::bad_option, "--metric needs samples to compare").hint("leave --compare-samples 0 out");
  if (flags.dry_run) return;
  if (flags.calibrate.path.empty() && flags.scales.empty())
    throw fail(E::bad_option, "nothing to calibrate with")
        .hint("add --calibrate FOLDER (.npy or .npz files), or --dry-run to see the places alone");
}

/// A finished scales file needs no samples.
quantization::Samples calibration_samples(const QuantizeFlags& flags, const Graph& graph, const SymbolValues& dims) {
  if (!flags.calibrate.path.empty()) return samples_of(flags.calibrate, graph, dims);
  quantization::Samples none;
  none.read = [](size_t) -> std::optional<std::vector<Tensor>> { return std::nullopt; };
  return none;
}

struct Judged {
  std::optional<quantization::Agreement> agreement;
  std::optional<Metric> metric;
};

/// Of samples of their own, else of those of calibration.
Judged judge(const QuantizeFlags& flags, const quantization::QuantizedModel& made,
             const quantization::Samples& calibration, const Graph& graph, const SymbolValues& dims,
             const quantization::RunOptions& run) {
  const bool others = !flags.evaluate.empty();
  Judged judged;
  if (flags.compare_samples == 0 || (!others && flags.calibrate.path.empty())) return judged;
  const SampleFlags own{.path = flags.evaluate, .seed = flags.calibrate.seed};
  const quantization::Samples all = others ? samples_of(own, graph, dims) : calibration;
  const quantization::Samples some = quantization::some_of(all, static_cast<size_t>(flags.compare_samples));
  judged.agreement = quantization::measure_agreement(made.reference, made.graph, some, run);
  finish_progress();
  if (flags.metric.empty()) return judged;
  judged.metric = measure_metric(flags.metric, made.reference, made.graph, some, *judged.agreement, run);
  finish_progress();
  return judged;
}

WriteOptions options_of_file(const QuantizeFlags& flags) {
  WriteOptions options;
  if (flags.weights == "beside") options.max_file_bytes = 0;
  return options;
}

int run(const FlagSet& app, const QuantizeFlags& flags) {
  check_flags(app, flags);
  const GivenModel model = open_graph(flags.model, "quantize");
  const Graph& graph = *model.graph;
  const SymbolValues dims = given_dimensions(graph, flags.dimensions);
  const quantization::QuantizeOptions options = quantize_options(flags, dims);
  if (flags.dry_run) {
    const quantization::QuantizedModel placed = quantization::place_graph(graph, options);
    if (flags.json) {
      Json out = document("opfuse.quantize/1");
      out["model"] = flags.model;
      out.update(quantization::report_json(placed, options, std::nullopt));
      print_json(out);
    } else {
      print_placement(placed, options, true);
    }
    return kOk;
  }
  const Stopwatch watch;
  const quantization::Samples samples = calibration_samples(flags, graph, dims);
  const quantization::QuantizedModel made = quantization::quantize_graph(graph, samples, options);
  const double seconds = watch.milliseconds() / 1000;
  finish_progress();
  const Judged judged = judge(flags, made, samples, graph, dims, options.run);
  Json out = document("opfuse.quantize/1");
  out.update({{"model", flags.model}, {"output", flags.output}, {"seconds", seconds}});
  out.update(quantization::report_json(made, options, judged.agreement));
  if (judged.metric)
    out["metric"] = {
        {"name", judged.metric->name}, {"float", judged.metric->of_float}, {"codes", judged.metric->of_codes}};
  out["evaluated_with"] = flags.evaluate.empty() ? flags.calibrate.path : flags.evaluate;
  if (!flags.output.empty()) write_onnx(made.graph, flags.output, options_of_file(flags));
  if (!flags.report.empty())
    write_text_file(flags.report,
                    flags.report.ends_with(".html") ? quantization::report_page(out) : out.dump(1) + "\n");
  if (flags.json)
    print_json(out);
  else
    print_quantized(made, options, judged.agreement, flags);
  if (!flags.json && judged.metric)
    fmt::print("metric   {}: {:g}, of the float model {:g}\n", judged.metric->name, judged.metric->of_codes,
               judged.metric->of_float);
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
