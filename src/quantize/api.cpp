// The public API over quantize_graph.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "base/limits.hpp"
#include "fusion/plan.hpp"
#include "opfuse/quantize.hpp"
#include "quantize/agreement.hpp"
#include "quantize/presets.hpp"
#include "quantize/quantize_graph.hpp"
#include "quantize/report_json.hpp"
#include "quantize/sample_files.hpp"
#include "quantize/weight_codes.hpp"

namespace opfuse {
namespace {

using namespace quantization;

QuantizeOptions options_of(const QuantizeRequest& request) {
  QuantizeOptions options;
  options.compiler = request.compiler;
  options.method = parse_method(request.method);
  if (!request.activations.empty() && request.activations != "u8" && request.activations != "s8")
    throw fail(E::bad_option, "activations are u8 or s8, not '{}'", request.activations);
  if (!request.activations.empty()) options.activations = request.activations == "u8" ? DType::u8 : DType::i8;
  options.bias_correction = request.bias_correction;
  options.equalize = parse_equalize(request.equalize);
  options.sharing = parse_sharing(request.share_scales);
  options.window_sums = parse_rounding(request.weight_rounding);
  options.presets = request.keep_float;
  for (const std::string& name : request.keep_float.value_or(std::vector<std::string>{})) preset_of(name);
  options.skip = request.skip, options.only = request.only;
  options.min_linear = request.min_linear;
  options.add_missing = request.add_missing;
  options.dims = request.plan.dims;
  options.plan = request.plan;
  options.scales_file = request.scales_file;
  options.run = {.threads = request.threads, .progress = request.progress};
  return options;
}

/// One tensor per input, sharing the caller's memory.
std::vector<Tensor> in_order(const Graph& graph, const std::map<std::string, ArrayView>& arrays) {
  std::vector<Tensor> sample;
  std::vector<std::string> names;
  for (const Value* input : graph.inputs()) {
    names.push_back(input->name);
    const auto at = arrays.find(input->name);
    if (at == arrays.end()) throw fail(E::bad_binding, "a sample has no array for the input '{}'", input->name);
    sample.push_back(Tensor::wrap(at->second.dtype, at->second.shape, at->second.data, nullptr));
  }
  for (const auto& [name, array] : arrays)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw fail(E::bad_binding, "a sample has an array for '{}', which the model does not read", name)
          .hint(did_you_mean(name, names));
  return sample;
}

Samples samples_of(const Graph& graph, const SampleSource& source) {
  return {.read = [&graph, source](size_t index) -> std::optional<std::vector<Tensor>> {
    std::map<std::string, ArrayView> arrays;
    if (!source(index, arrays)) return std::nullopt;
    return in_order(graph, arrays);
  }};
}

Samples samples_of(const Graph& graph, const SampleFiles& files, const QuantizeRequest& request,
                   std::vector<std::string>& notes) {
  PictureOptions pictures{.mean = files.image_mean,
                          .std = files.image_std,
                          .bgr = parse_bgr(files.image_channels),
                          .fit = parse_fit(files.image_fit),
                          .height = files.image_height,
                          .width = files.image_width};
  if (files.most < 0) throw fail(E::bad_option, "{} samples", files.most);
  SampleFileOptions options{
      .most = static_cast<size_t>(files.most), .dims = request.plan.dims, .pictures = std::move(pictures)};
  return samples_from_files(files.path, graph, options, &notes);
}

Quantized run(const Model& model, const Samples& samples, const QuantizeOptions& options, int64_t compared) {
  const Graph& graph = model.graph();
  QuantizedModel made = quantize_graph(graph, samples, options);
  std::optional<Agreement> agreement;
  if (compared > 0)
    agreement =
        measure_agreement(made.reference, made.graph, some_of(samples, static_cast<size_t>(compared)), options.run);
  nlohmann::ordered_json report{{"schema", "opfuse.quantize/1"}, {"opfuse", version()}};
  report.update(report_json(made, options, agreement));
  return {Model::from_graph(std::move(made.graph)),
          report.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace), std::move(made.warnings)};
}

QuantizeOptions options_of(const QuantizeRequest& request, const Plan& plan) {
  QuantizeOptions options = options_of(request);
  options.given_plan = std::make_shared<const FusionPlan>(plan_from_json(plan.json()));
  return options;
}

Quantized run_files(const Model& model, const SampleFiles& files, const QuantizeOptions& options,
                    const QuantizeRequest& request) {
  const Limits limits = limits_with(request.plan.limits);
  const LimitScope scope(limits);
  std::vector<std::string> notes;
  const Samples samples = samples_of(model.graph(), files, request, notes);
  Quantized made = run(model, samples, options, request.compare_samples);
  made.warnings.insert(made.warnings.begin(), notes.begin(), notes.end());
  return made;
}

}  // namespace

Quantized quantize(const Model& model, const SampleSource& source, const QuantizeRequest& request) {
  return run(model, samples_of(model.graph(), source), options_of(request), request.compare_samples);
}

Quantized quantize(const Model& model, const Plan& plan, const SampleSource& source, const QuantizeRequest& request) {
  return run(model, samples_of(model.graph(), source), options_of(request, plan), request.compare_samples);
}

Quantized quantize(const Model& model, const SampleFiles& files, const QuantizeRequest& request) {
  return run_files(model, files, options_of(request), request);
}

Quantized quantize(const Model& model, const Plan& plan, const SampleFiles& files, const QuantizeRequest& request) {
  return run_files(model, files, options_of(request, plan), request);
}

}  // namespace opfuse
