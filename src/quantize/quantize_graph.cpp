// The stages in their order. Nothing is written here: a failure leaves no half of a model behind.
#include "quantize/quantize_graph.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/fail.hpp"
#include "driver/compilation.hpp"
#include "quantize/prepare_products.hpp"
#include "quantize/record.hpp"

namespace opfuse::quantization {
namespace {

PlacementRequest placement_request(const QuantizeOptions& options, const CompilerRules& rules) {
  PlacementRequest request{.rules = &rules,
                           .skip = options.skip,
                           .only = options.only,
                           .min_linear = options.min_linear,
                           .add_missing = options.add_missing};
  request.presets = options.presets.value_or(std::vector<std::string>(rules.presets.begin(), rules.presets.end()));
  return request;
}

DType activations_of(const QuantizeOptions& options, const CompilerRules& rules) {
  const DType wanted = options.activations.value_or(rules.activations);
  if (wanted != DType::i8 && wanted != DType::u8)
    throw fail(E::bad_option, "activations are u8 or s8 codes, not {}", name_of(wanted));
  if (wanted == DType::u8 && !rules.affine)
    throw fail(E::bad_option, "{} takes zero point 0 only, so its codes are s8", rules.name)
        .hint("leave --activations out, or choose another --for");
  return wanted;
}

/// A tensor that no sample gave an element has no range: whatever reads it stays in float.
void drop_unseen(QuantizedModel& made) {
  for (size_t i = made.placement.tensors.size(); i-- > 0;) {
    if (made.calibration.tensors[i].elements > 0) continue;
    const PlacedTensor placed = made.placement.tensors[i];
    made.warnings.push_back(
        fmt::format("'{}' had no element in any sample: what reads it stays in float", placed.tensor));
    std::erase_if(made.placement.products, [&](const PlacedProduct& p) {
      return std::find(placed.readers.begin(), placed.readers.end(), p.node) != placed.readers.end();
    });
    made.placement.tensors.erase(made.placement.tensors.begin() + static_cast<int64_t>(i));
    made.calibration.tensors.erase(made.calibration.tensors.begin() + static_cast<int64_t>(i));
  }
}

void choose_codes(QuantizedModel& made, const QuantizeOptions& options, DType dtype) {
  const auto& tensors = made.placement.tensors;
  for (const TensorStatistics& statistics : made.calibration.tensors) {
    made.codes.push_back(codes_of(statistics, options.method, dtype));
    if (statistics.low != statistics.high) continue;
    made.warnings.push_back(fmt::format("'{}' is {:g} in every sample", statistics.tensor, statistics.low));
  }
  for (size_t i = 0; i < tensors.size(); ++i)
    for (size_t j = 0; j < tensors.size(); ++j)
      if (tensors[i].scale_of == tensors[j].value) made.codes[i] = made.codes[j];
}

void warn_of_products(QuantizedModel& made) {
  for (const QuantizedProduct& product : made.products) {
    if (product.dead_channels > 0)
      made.warnings.push_back(fmt::format("{} output channel{} of {} have no weight but 0", product.dead_channels,
                                          product.dead_channels == 1 ? "" : "s", product.name));
    if (!product.note.empty()) made.warnings.push_back(fmt::format("{}: {}", product.name, product.note));
  }
}

/// Named patterns alone: rules may join what stands in front of a module to it, and its points with it.
FusionPlan plan_of_modules(const Graph& prepared, const TargetInfo& target, const PlanRequest& request) {
  PlanOptions options = plan_options(target, request);
  options.rules = false;
  options.legal = {}, options.price = {};
  const std::vector<FusionPattern> patterns = patterns_of(request);
  options.patterns = &patterns;
  return make_plan(prepared, options);
}

}  // namespace

QuantizedModel place_graph(const Graph& model, const QuantizeOptions& options) {
  const CompilerRules& rules = rules_of(options.compiler);
  CompilationOptions compile;
  compile.dims = options.dims;
  const TargetInfo target = parse_target("host");
  Compilation compilation(model, target, std::move(compile));
  compilation.run_to(Milestone::prepared);
  QuantizedModel made;
  made.plan = options.given_plan ? *options.given_plan : plan_of_modules(compilation.prepared, target, options.plan);
  if (made.plan.model != model_hash(compilation.prepared))
    throw fail(E::stale_plan, "the plan was made for another model").hint("make the plan again, with the same --dim");
  made.placement = place(compilation.prepared, made.plan, placement_request(options, rules));
  made.reference = prepare_products(compilation.prepared, made.placement);
  return made;
}

QuantizedModel quantize_graph(const Graph& model, const Samples& samples, const QuantizeOptions& options) {
  const CompilerRules& rules = rules_of(options.compiler);
  const DType dtype = activations_of(options, rules);
  QuantizedModel made = place_graph(model, options);
  if (made.placement.tensors.empty()) {
    made.graph = made.reference.clone();
    made.warnings.emplace_back("no module is quantised: the model is as it was");
    return made;
  }
  made.calibration = calibrate(made.reference, made.placement, samples,
                               {.bins = needs_bins(options.method),
                                .means = options.bias_correction,
                                .scales_file = options.scales_file,
                                .run = options.run});
  drop_unseen(made);
  choose_codes(made, options, dtype);
  QuantizedGraph quantized = insert_pairs(
      made.reference, made.placement, made.codes,
      {.bias_codes = rules.bias_codes, .means = options.bias_correction ? &made.calibration.tensors : nullptr});
  made.graph = std::move(quantized.graph);
  keep_record(made.graph, rules.name, made.placement);
  made.products = std::move(quantized.products);
  warn_of_products(made);
  return made;
}

}  // namespace opfuse::quantization
