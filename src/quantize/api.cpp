// The public API over quantize_graph.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "base/limits.hpp"
#include "fusion/plan.hpp"
#include "opfuse/quantize.hpp"
#include "quantize/convert.hpp"
#include "quantize/judge.hpp"
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
  if (!request.activations.empty()) options.activations = parse_data_codes(request.activations);
  options.bias_correction = request.bias_correction;
  options.equalize = parse_equalize(request.equalize);
  options.sharing = parse_sharing(request.share_scales);
  options.window_sums = parse_rounding(request.weight_rounding);
  if (!request.pair_sums.empty()) options.int16_pairs = parse_pair_sums(request.pair_sums);
  options.presets = request.keep_float;
  for (const std::string& name : request.keep_float.value_or(std::vector<std::string>{})) preset_of(name);
  options.skip = request.skip, options.only = request.only;
  if (request.min_linear.value_or(0) < 0) throw fail(E::bad_option, "least K N / (K + N) of {}", *request.min_linear);
  options.min_linear = request.min_linear;
  options.add_missing = request.add_missing;
  options.dims = request.plan.dims;
  options.plan = request.plan;
  options.scales_file = request.scales_file;
  options.run = {.threads = request.threads, .progress = request.progress};
  return options;
}

/// One tensor per input, sharing the caller's memory.
std::vector<Tensor> in_order(const Graph& graph, size_t index, const std::map<std::string, ArrayView>& arrays) {
  std::vector<Tensor> sample;
  std::vector<std::string> names;
  for (const Value* input : graph.inputs()) {
    names.push_back(input->name);
    const auto at = arrays.find(input->name);
    if (at == arrays.end()) throw fail(E::bad_binding, "sample {} has no array for the input '{}'", index, input->name);
    sample.push_back(Tensor::wrap(at->second.dtype, at->second.shape, at->second.data, nullptr));
  }
  for (const auto& [name, array] : arrays)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw fail(E::bad_binding, "sample {} has an array for '{}', which the model does not read", index, name)
          .hint(did_you_mean(name, names));
  return sample;
}

Samples samples_of(const Graph& graph, const SampleSource& source, const QuantizeRequest& /*request*/,
                   std::vector<std::string>& /*notes*/) {
  if (!source) throw fail(E::bad_option, "the function that gives samples is empty");
  return {.read = [&graph, source](size_t index) -> std::optional<std::vector<Tensor>> {
            std::map<std::string, ArrayView> arrays;
            if (!source(index, arrays)) return std::nullopt;
            return in_order(graph, index, arrays);
          },
          .count = source.count};
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

struct Sources {
  Samples calibration;
  std::optional<Samples> evaluation;  ///< none: calibration's
  std::vector<std::string> notes;
};

Quantized run(const Model& model, const Sources& sources, const QuantizeOptions& options,
              const QuantizeRequest& request) {
  const JudgeChoice choice{.compare_samples = request.compare_samples,
                           .metric = {.name = request.metric, .score = request.score},
                           .max_drop = request.max_drop,
                           .lower_bound = request.lower_bound};
  JudgedModel judged =
      quantize_and_judge(model.graph(), sources.calibration,
                         sources.evaluation ? &*sources.evaluation : &sources.calibration, options, choice);
  nlohmann::ordered_json report{{"schema", "opfuse.quantize/1"}, {"opfuse", version()}, {"model", model.graph().name}};
  report.update(report_json(judged, options));
  std::vector<std::string> warnings = sources.notes;
  warnings.insert(warnings.end(), judged.made.warnings.begin(), judged.made.warnings.end());
  return {Model::from_graph(std::move(judged.made.graph)),
          report.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace), std::move(warnings)};
}

/// What does not go with `to`; empty: nothing was asked for.
std::string only_for_pairs(const QuantizeRequest& r) {
  const QuantizeRequest usual;
  if (r.compiler != usual.compiler) return "compiler";
  if (r.method != usual.method) return "method";
  if (!r.activations.empty()) return "activations";
  if (r.bias_correction) return "bias_correction";
  if (r.equalize != usual.equalize) return "equalize";
  if (r.share_scales != usual.share_scales) return "share_scales";
  if (r.weight_rounding != usual.weight_rounding) return "weight_rounding";
  if (!r.pair_sums.empty()) return "pair_sums";
  if (r.keep_float) return "keep_float";
  if (r.add_missing) return "add_missing";
  if (!r.metric.empty() || r.score) return "metric";
  if (!r.max_drop.empty() || r.lower_bound) return "max_drop";
  return r.scales_file.empty() ? "" : "scales_file";
}

Quantized converted(const Model& model, const Samples* data, const Samples* judging, const QuantizeRequest& request) {
  if (const std::string name = only_for_pairs(request); !name.empty())
    throw fail(E::bad_option, "{} does not apply: {} has no pairs", name, request.to);
  const ConvertChoice choice{request.to,   request.block,      request.skip,
                             request.only, request.min_linear, request.compare_samples};
  ConvertedModel made =
      convert_model(model.graph(), choice, data, judging, {.threads = request.threads, .progress = request.progress});
  made.report["model"] = model.graph().name;
  return {Model::from_graph(std::move(made.graph)),
          made.report.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace), std::move(made.warnings)};
}

QuantizeOptions options_of(const QuantizeRequest& request, const Plan& plan) {
  if (!request.to.empty()) throw fail(E::bad_option, "a plan does not apply: {} has no pairs", request.to);
  QuantizeOptions options = options_of(request);
  options.given_plan = std::make_shared<const FusionPlan>(plan_from_json(plan.json()));
  return options;
}

/// Samples from a function, or from files, and those that judge.
template <class Source>
Quantized run(const Model& model, const Source& source, const QuantizeOptions& options,
              const QuantizeRequest& request) {
  const Limits limits = limits_with(request.plan.limits);
  const LimitScope scope(limits);
  if (request.evaluate && request.evaluate_files)
    throw fail(E::bad_option, "evaluate and evaluate_files are both given").hint("give one of the two");
  const Graph& graph = model.graph();
  Sources sources;
  sources.calibration = samples_of(graph, source, request, sources.notes);
  if (request.evaluate) sources.evaluation = samples_of(graph, request.evaluate, request, sources.notes);
  if (request.evaluate_files) sources.evaluation = samples_of(graph, *request.evaluate_files, request, sources.notes);
  if (!request.to.empty())
    return converted(model, &sources.calibration, sources.evaluation ? &*sources.evaluation : &sources.calibration,
                     request);
  if (request.block) throw fail(E::bad_option, "block does not apply: it goes with `to`");
  return run(model, sources, options, request);
}

}  // namespace

void Quantized::save_report(const std::string& path) const {
  write_report(path, nlohmann::ordered_json::parse(report));
}

Quantized quantize(const Model& model, const SampleSource& source, const QuantizeRequest& request) {
  return run(model, source, options_of(request), request);
}

Quantized quantize(const Model& model, const Plan& plan, const SampleSource& source, const QuantizeRequest& request) {
  return run(model, source, options_of(request, plan), request);
}

Quantized quantize(const Model& model, const QuantizeRequest& request) {
  if (request.to.empty()) throw fail(E::bad_option, "pairs need samples").hint("give some, or `to`");
  const Limits limits = limits_with(request.plan.limits);
  const LimitScope scope(limits);
  std::vector<std::string> notes;
  std::optional<Samples> judging;
  if (request.evaluate) judging = samples_of(model.graph(), request.evaluate, request, notes);
  if (request.evaluate_files) judging = samples_of(model.graph(), *request.evaluate_files, request, notes);
  return converted(model, nullptr, judging ? &*judging : nullptr, request);
}

Quantized quantize(const Model& model, const SampleFiles& files, const QuantizeRequest& request) {
  return run(model, files, options_of(request), request);
}

Quantized quantize(const Model& model, const Plan& plan, const SampleFiles& files, const QuantizeRequest& request) {
  return run(model, files, options_of(request, plan), request);
}

}  // namespace opfuse
