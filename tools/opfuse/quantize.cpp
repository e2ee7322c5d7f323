// opfuse quantize: a float model to one with Q/DQ pairs, and how near the two are.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "base/stopwatch.hpp"
#include "console.hpp"
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
  std::optional<quantization::Agreement> agreement;
  const bool others = !flags.evaluate.empty();
  if (flags.compare_samples > 0 && (others || !flags.calibrate.path.empty())) {
    const SampleFlags judged{.path = flags.evaluate, .seed = flags.calibrate.seed};
    const quantization::Samples all = others ? samples_of(judged, graph, dims) : samples;
    const auto most = static_cast<size_t>(flags.compare_samples);
    agreement =
        quantization::measure_agreement(made.reference, made.graph, quantization::some_of(all, most), options.run);
    finish_progress();
  }
  Json out = document("opfuse.quantize/1");
  out.update({{"model", flags.model}, {"output", flags.output}, {"seconds", seconds}});
  out.update(quantization::report_json(made, options, agreement));
  out["evaluated_with"] = flags.evaluate.empty() ? flags.calibrate.path : flags.evaluate;
  if (!flags.output.empty()) write_onnx(made.graph, flags.output);
  if (!flags.report.empty())
    write_text_file(flags.report,
                    flags.report.ends_with(".html") ? quantization::report_page(out) : out.dump(1) + "\n");
  if (flags.json)
    print_json(out);
  else
    print_quantized(made, options, agreement, flags);
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
