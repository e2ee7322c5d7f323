// What conversion costs is measured with what the file holds: opfuse computes f16 and bf16 files in f32, so the
// agreement is that of the rounded constants; other runtimes round values between operators too.
#include "quantize_narrow.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/read_files.hpp"
#include "console.hpp"
#include "model_arg.hpp"
#include "onnx/write.hpp"
#include "outputs.hpp"
#include "quantize/agreement.hpp"
#include "quantize/convert.hpp"
#include "quantize/narrow_floats.hpp"
#include "quantize/report_json.hpp"
#include "quantize_text.hpp"
#include "report.hpp"
#include "talk.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

void check_flags(const FlagSet& app, const QuantizeFlags& flags) {
  refuse_flags(app, {"--block"}, "16-bit floats have no blocks", "--to int8-weights or int4-weights has them");
  refuse_flags(app,
               {"--calibrate",
                "--samples",
                "--method",
                "--for",
                "--activations",
                "--keep-float",
                "--skip",
                "--only",
                "--min-linear",
                "--add-missing",
                "--bias-correction",
                "--equalize",
                "--weight-rounding",
                "--pair-sums",
                "--share-scales",
                "--scales",
                "--metric",
                "--max-drop",
                "--lower-bound",
                "--plan",
                "--patterns",
                "--dry-run"},
               "--to converts all of the model and needs no ranges", "--evaluate PATH measures what it costs");
  check_companions(app, {{"--compare-samples", "--evaluate"}});
  remember_read_file(flags.model);
  check_output("--output", flags.output, {".onnx"}, flags.force);
  check_output("--report", flags.report, {".json"}, false, false);
}

Json json_of(const quantization::NarrowedModel& made, const QuantizeFlags& flags) {
  Json out{{"model", flags.model}, {"output", flags.output}, {"to", flags.to}};
  out.update(quantization::converted_json(made));
  return out;
}

void print_converted(const quantization::NarrowedModel& made, const QuantizeFlags& flags,
                     const std::optional<quantization::Agreement>& agreement) {
  fmt::print("{} values are {} now, constants {:.1f} MB of {:.1f}; {} casts\n", made.values, flags.to,
             static_cast<double>(made.bytes_after) / 1e6, static_cast<double>(made.bytes_before) / 1e6, made.casts);
  if (!made.kept.empty())
    fmt::print("  in f32     {} nodes, which ONNX knows in no 16-bit float: {}\n", made.kept.size(),
               listed(made.kept, flags.verbose ? made.kept.size() : 4));
  for (const std::string& text : made.warnings) warn(text);
  if (!agreement) return;
  fmt::print("agreement with the float model, {} samples, computed in f32 by opfuse\n", agreement->samples);
  print_agreement(*agreement, kLostBelow, flags.verbose);
}

}  // namespace

int convert_floats(const FlagSet& app, const QuantizeFlags& flags) {
  check_flags(app, flags);
  const DType to = quantization::parse_narrow(flags.to);
  const GivenModel model = open_graph(flags.model, "quantize");
  const SymbolValues dims = given_dimensions(*model.graph, flags.dimensions);
  const quantization::NarrowedModel made = quantization::narrow_floats(*model.graph, to);
  std::optional<quantization::Agreement> agreement;
  if (!flags.evaluate.empty() && flags.compare_samples > 0) {
    const quantization::Samples all = samples_of({.path = flags.evaluate}, flags.pictures, *model.graph, dims);
    agreement = quantization::measure_agreement(
        made.reference, made.graph, quantization::some_of(all, static_cast<size_t>(flags.compare_samples)),
        {.threads = flags.threads, .cache = !flags.no_cache, .progress = show_progress});
    finish_progress();
  }
  Json out = document("opfuse.convert/1");
  out.update(json_of(made, flags));
  out["agreement"] = agreement ? quantization::agreement_json(*agreement) : Json();
  if (!flags.output.empty()) write_onnx(made.graph, flags.output, options_of_file(flags));
  if (!flags.report.empty()) quantization::write_report(flags.report, out);
  if (flags.json)
    print_json(out);
  else
    print_converted(made, flags, agreement);
  for (const std::string& path : {flags.output, flags.report})
    if (!path.empty()) say(fmt::format("wrote {}", path));
  return kOk;
}

}  // namespace opfuse::cli
