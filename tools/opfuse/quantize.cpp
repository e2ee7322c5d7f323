// opfuse quantize: a float model to one with Q/DQ pairs, and how near the two are.
#include <fmt/core.h>

#include <charconv>
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
#include "quantize/search.hpp"
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
  if (!flags.max_drop.empty() && (flags.metric.empty() || flags.calibrate.path.empty()))
    throw fail(E::bad_option, "--max-drop needs --calibrate and --metric").hint("for example --metric top1");
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
  const quantization::Samples all = others ? samples_of(own, flags.pictures, graph, dims) : calibration;
  const quantization::Samples some = quantization::some_of(all, static_cast<size_t>(flags.compare_samples));
  judged.agreement = quantization::measure_agreement(made.reference, made.graph, some, run);
  finish_progress();
  if (flags.metric.empty()) return judged;
  judged.metric = measure_metric(flags.metric, made.reference, made.graph, some, *judged.agreement, run);
  finish_progress();
  return judged;
}

/// "1%" or "0.01".
double drop_of(std::string text) {
  const bool percent = text.ends_with('%');
  if (percent) text.pop_back();
  double drop = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), drop);
  if (error != std::errc{} || end != text.data() + text.size() || !(drop >= 0) || drop > 100)
    throw fail(E::bad_option, "--max-drop is a share such as 1% or 0.01, not '{}'", text);
  return percent ? drop / 100 : drop;
}

/// Chooses by samples of calibration: those of --evaluate only judge.
quantization::Search search_for(const QuantizeFlags& flags, const Graph& graph, const quantization::Samples& samples,
                                const quantization::QuantizeOptions& options, quantization::QuantizedModel& made) {
  constexpr size_t kProbes = 4;
  const quantization::Samples some = quantization::some_of(samples, static_cast<size_t>(flags.compare_samples));
  const auto metric = [&](const quantization::QuantizedModel& candidate) {
    const auto agreement = quantization::measure_agreement(candidate.reference, candidate.graph, some, options.run);
    const Metric m = measure_metric(flags.metric, candidate.reference, candidate.graph, some, agreement, options.run);
    return std::pair{m.of_codes, m.of_float};
  };
  auto found = quantization::search_modules(graph, some, options, drop_of(flags.max_drop), kProbes, metric, made);
  finish_progress();
  return found;
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
  quantization::QuantizedModel made = quantization::quantize_graph(graph, samples, options);
  std::optional<quantization::Search> search;
  if (!flags.max_drop.empty() && !made.placement.products.empty())
    search = search_for(flags, graph, samples, options, made);
  const double seconds = watch.milliseconds() / 1000;
  finish_progress();
  const Judged judged = judge(flags, made, samples, graph, dims, options.run);
  Json out = document("opfuse.quantize/1");
  out.update({{"model", flags.model}, {"output", flags.output}, {"seconds", seconds}});
  out.update(quantization::report_json(made, options, judged.agreement));
  if (search) out["search"] = quantization::search_json(*search);
  if (judged.metric)
    out["metric"] = {
        {"name", judged.metric->name}, {"float", judged.metric->of_float}, {"codes", judged.metric->of_codes}};
  out["evaluated_with"] = flags.evaluate.empty() ? flags.calibrate.path : flags.evaluate;
  if (!flags.output.empty()) write_onnx(made.graph, flags.output, options_of_file(flags));
  if (!flags.report.empty())
    write_text_file(flags.report,
                    flags.report.ends_with(".html") ? quantization::report_page(out) : json_text(out, 1) + "\n");
  if (flags.json)
    print_json(out);
  else
    print_quantized(made, options, judged.agreement, flags);
  if (!flags.json && search) print_search(*search, flags.metric);
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
