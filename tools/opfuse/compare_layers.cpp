// Tensors are matched by name: the float model's after preparing, which is what `opfuse quantize` put its pairs on.
#include "compare_layers.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "console.hpp"
#include "model_arg.hpp"
#include "quantize/agreement.hpp"
#include "quantize/report_json.hpp"
#include "quantize_text.hpp"
#include "report.hpp"
#include "verb.hpp"

namespace opfuse::cli {

void add_layer_flags(FlagSet& app, LayerFlags& flags) {
  app.add_option(
         "--data", flags.data.path,
         "with --against: samples to compare a quantised model on, layer by layer: a folder, .npz or .npy, or random")
      ->type_name("PATH");
  app.add_option("--samples", flags.data.samples, "with --data: at most this many, evenly spread; 0: all")
      ->range(0, 1 << 30)
      ->capture_default_str();
  app.add_option("--least-sqnr", flags.least_sqnr,
                 "with --data: dB below which an output fails and a layer counts as lost")
      ->capture_default_str();
  add_picture_flags(app, flags.pictures);
}

int compare_layers(const std::string& quantised, const std::string& against, const LayerFlags& flags,
                   const DimensionFlags& dimensions, const CompileFlags& compile, bool all, bool json) {
  const GivenModel model = open_graph(quantised, "compare"), other = open_graph(against, "compare");
  const SymbolValues dims = given_dimensions(*other.graph, dimensions);
  Compilation reference(*other.graph, parse_target("host"), {.dims = dims});
  reference.run_to(Milestone::prepared);
  const quantization::Agreement agreement = quantization::measure_agreement(
      reference.prepared, *model.graph, samples_of(flags.data, flags.pictures, *other.graph, dims),
      {.threads = compile.threads, .cache = !compile.no_cache, .progress = show_progress});
  finish_progress();
  const bool ok = std::all_of(agreement.outputs.begin(), agreement.outputs.end(),
                              [&](const auto& output) { return output.noise.sqnr() >= flags.least_sqnr; });
  if (json) {
    Json out = document("opfuse.compare-layers/1");
    out.update({{"model", quantised},
                {"against", against},
                {"data", flags.data.path},
                {"least_sqnr", flags.least_sqnr},
                {"ok", ok}});
    out.update(quantization::agreement_json(agreement));
    const auto* lost = agreement.first_below(flags.least_sqnr);
    out["lost_first"] = lost ? Json(lost->tensor) : Json();
    print_json(out);
  } else {
    fmt::print("layers   {} of both models, {} samples\n", agreement.layers.size(), agreement.samples);
    print_agreement(agreement, flags.least_sqnr, all);
    fmt::print("{}\n", ok ? "PASSED" : "FAILED");
  }
  return ok ? kOk : kCheckFailed;
}

}  // namespace opfuse::cli
