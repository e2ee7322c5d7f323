// Data stay floats, so what the codes cost is known from the weights; --evaluate adds what outputs lose.
#include "quantize_weights.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/read_files.hpp"
#include "console.hpp"
#include "model_arg.hpp"
#include "onnx/write.hpp"
#include "outputs.hpp"
#include "quantize/agreement.hpp"
#include "quantize/code_weights.hpp"
#include "quantize/convert.hpp"
#include "quantize/data_powers.hpp"
#include "quantize/report_json.hpp"
#include "quantize_text.hpp"
#include "report.hpp"
#include "talk.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

using quantization::CodedModel;
using quantization::CodedProduct;

constexpr size_t kRows = 10;  ///< of products without --verbose, worst first

void check_flags(const FlagSet& app, const QuantizeFlags& flags) {
  refuse_flags(app,
               {"--method", "--for", "--activations", "--keep-float", "--add-missing", "--bias-correction",
                "--equalize", "--weight-rounding", "--pair-sums", "--share-scales", "--scales", "--metric",
                "--max-drop", "--lower-bound", "--plan", "--patterns", "--dry-run"},
               fmt::format("--to {} codes weights alone, without ranges", flags.to),
               "--calibrate PATH lets data say which errors count, --evaluate PATH measures what it costs; --skip and "
               "--only choose products");
  check_companions(app, {{"--compare-samples", "--evaluate"},
                         {"--force", "--output"},
                         {"--samples", "--calibrate"},
                         {"--seed", "--calibrate"}});
  check_seed(app, flags.calibrate.path);
  remember_read_file(flags.model);
  check_output("--output", flags.output, {".onnx"}, flags.force);
  check_output("--report", flags.report, {".json"}, false, false);
}

quantization::CodeWeightsOptions options_of(const QuantizeFlags& flags) {
  quantization::CodeWeightsOptions options;
  options.type = quantization::parse_coded_weights(flags.to);
  options.block = flags.block >= 0 ? flags.block : quantization::default_block(options.type);
  options.skip = flags.skip, options.only = flags.only;
  if (flags.min_linear >= 0) options.min_linear = flags.min_linear;
  options.threads = flags.threads;
  options.progress = show_progress;
  return options;
}

Json json_of(const CodedModel& made, const QuantizeFlags& flags, int64_t block) {
  Json out{
      {"model", flags.model}, {"output", flags.output}, {"to", flags.to}, {"calibrated_with", flags.calibrate.path}};
  out.update(quantization::coded_json(made, block));
  return out;
}

std::string channels_text(const CodedProduct& p) {
  if (p.alpha <= 0) return "";
  return fmt::format("alpha {:g}, {:.1f} dB less expected noise{}", p.alpha, p.gain, p.folded ? "" : ", by a Mul");
}

void print_products(std::vector<CodedProduct> products, bool all) {
  std::stable_sort(products.begin(), products.end(),
                   [](const CodedProduct& a, const CodedProduct& b) { return a.sqnr < b.sqnr; });
  const bool by_data = std::any_of(products.begin(), products.end(), [](const auto& p) { return p.alpha > 0; });
  Table table({"product", ">K", ">N", ">SQNR dB", ">clipped", ">before", ">after", by_data ? "channels of data" : ""});
  const size_t shown = all ? products.size() : std::min(products.size(), kRows);
  for (const CodedProduct& p : std::span(products).first(shown))
    table.row({p.node, std::to_string(p.depth), std::to_string(p.columns),
               std::isfinite(p.sqnr) ? fmt::format("{:.1f}", p.sqnr) : "exact", std::to_string(p.clipped),
               p.bytes_before > 0 ? human_bytes(static_cast<double>(p.bytes_before)) : "shared",
               p.bytes_before > 0 ? human_bytes(static_cast<double>(p.bytes_after)) : "", channels_text(p)});
  fmt::print("{}", table.text());
  if (shown < products.size()) fmt::print("  the {} worst of {}; -v lists all\n", shown, products.size());
}

void print_left(const CodedModel& made, bool all) {
  std::map<std::string, std::vector<const quantization::LeftProduct*>> by_code;
  for (const auto& l : made.left) by_code[l.why.code].push_back(&l);
  for (const auto& [code, left] : by_code) {
    if (!all) {
      fmt::print("  float      {} {}: {}: {}{}\n", left.size(), code, left.front()->node, left.front()->why.message,
                 left.size() > 1 ? " ..." : "");
      continue;
    }
    for (const auto* l : left) fmt::print("  float      {}: {}: {}\n", code, l->node, l->why.message);
  }
}

void print_coded(const CodedModel& made, const QuantizeFlags& flags, int64_t block,
                 const std::optional<quantization::Agreement>& agreement) {
  fmt::print("{} products have weights of codes ({}, {}), constants {} of {}\n", made.products.size(), flags.to,
             block > 0 ? fmt::format("blocks of {}", block) : "a scale per column",
             human_bytes(static_cast<double>(made.bytes_after)), human_bytes(static_cast<double>(made.bytes_before)));
  print_products(made.products, flags.verbose);
  print_left(made, flags.verbose);
  if (!agreement) return;
  fmt::print("agreement with the float model, {} samples\n", agreement->samples);
  print_agreement(*agreement, kLostBelow, flags.verbose);
}

}  // namespace

int code_weights_alone(const FlagSet& app, const QuantizeFlags& flags) {
  check_flags(app, flags);
  const GivenModel model = open_graph(flags.model, "quantize");
  const SymbolValues dims = given_dimensions(*model.graph, flags.dimensions);
  quantization::CodeWeightsOptions options = options_of(flags);
  const quantization::RunOptions runs{.threads = flags.threads, .cache = !flags.no_cache, .progress = show_progress};
  quantization::DataPowers powers;
  if (!flags.calibrate.path.empty()) {
    const quantization::Samples samples = samples_of(flags.calibrate, flags.pictures, *model.graph, dims);
    powers = quantization::measure_powers(*model.graph, samples, runs);
    options.powers = &powers;
  }
  const CodedModel made = quantization::code_weights(*model.graph, options);
  std::optional<quantization::Agreement> agreement;
  if (!flags.evaluate.empty() && flags.compare_samples > 0) {
    const quantization::Samples all = samples_of({.path = flags.evaluate}, flags.pictures, *model.graph, dims);
    agreement = quantization::measure_agreement(
        made.reference, made.graph, quantization::some_of(all, static_cast<size_t>(flags.compare_samples)), runs);
  }
  finish_progress();
  Json out = document("opfuse.code-weights/1");
  out.update(json_of(made, flags, options.block));
  out["agreement"] = agreement ? quantization::agreement_json(*agreement) : Json();
  if (!flags.output.empty()) write_onnx(made.graph, flags.output, options_of_file(flags));
  if (!flags.report.empty()) quantization::write_report(flags.report, out);
  if (flags.json)
    print_json(out);
  else
    print_coded(made, flags, options.block, agreement);
  for (const std::string& path : {flags.output, flags.report})
    if (!path.empty()) say(fmt::format("wrote {}", path));
  return kOk;
}

}  // namespace opfuse::cli
