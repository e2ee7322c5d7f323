// The stages in their order. Nothing is written here: a failure leaves no half of a model behind.
#include "quantize/quantize_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/fail.hpp"
#include "driver/compilation.hpp"
#include "ir/value_name.hpp"
#include "quantize/prepare_products.hpp"
#include "quantize/record.hpp"

namespace opfuse::quantization {
namespace {

PlacementRequest placement_request(const QuantizeOptions& options, const CompilerRules& rules) {
  return {.rules = rules,
          .presets = options.presets.value_or(rules.presets),
          .target_leaves = !options.presets,
          .skip = options.skip,
          .only = options.only,
          .min_linear = options.min_linear,
          .add_missing = options.add_missing};
}

DataCodes activations_of(const QuantizeOptions& options, const CompilerRules& rules) {
  const DataCodes wanted = options.activations.value_or(rules.activations);
  const bool named = wanted == rules.activations || wanted == DataCodes::s8;
  if (!named && !rules.affine)
    throw fail(E::bad_option, "{} takes i8 codes with zero point 0 only", rules.name)
        .hint("leave --activations out, or choose another --for");
  return wanted;
}

/// Indices behind `gone` move up by one.
void forget(std::vector<SharedScale>& groups, size_t gone) {
  for (SharedScale& group : groups) {
    if (const auto at = std::find(group.tensors.begin(), group.tensors.end(), gone); at != group.tensors.end())
      group.tensors.erase(at), group.cost.pop_back();
    for (size_t& i : group.tensors) i -= i > gone ? 1 : 0;
  }
  std::erase_if(groups, [](const SharedScale& group) { return group.tensors.size() < 2; });
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
    made.before.tensors.erase(made.before.tensors.begin() + static_cast<int64_t>(i));
    made.calibration.tensors.erase(made.calibration.tensors.begin() + static_cast<int64_t>(i));
    forget(made.shared, i);
  }
}

void choose_codes(QuantizedModel& made, const QuantizeOptions& options, DataCodes data) {
  for (const TensorStatistics& statistics : made.calibration.tensors) {
    made.codes.push_back(codes_of(statistics, options.method, dtype_of(data, statistics.low < 0)));
    if (statistics.low != statistics.high) continue;
    made.warnings.push_back(fmt::format("'{}' is {:g} in every sample", statistics.tensor, statistics.low));
  }
  share_codes(made.placement, made.calibration.tensors, options.method, made.shared, made.codes);
}

void warn_of_products(QuantizedModel& made) {
  for (const QuantizedProduct& product : made.products) {
    if (product.dead_channels > 0)
      made.warnings.push_back(fmt::format("{} output channel{} of {} {} no weight but 0", product.dead_channels,
                                          product.dead_channels == 1 ? "" : "s", product.name,
                                          product.dead_channels == 1 ? "has" : "have"));
    if (!product.note.empty()) made.warnings.push_back(fmt::format("{}: {}", product.name, product.note));
  }
}

/// Named patterns and the compiler's composites alone: they declare all points there are, and what rules and prices add
/// to modules depends on the machine, which a file for deployment must not.
FusionPlan plan_of_modules(const Graph& prepared, const CompilerRules& rules, const PlanRequest& request) {
  PlanOptions options;
  options.only = request.only, options.skip = request.skip;
  options.no_fuse = request.no_fuse, options.fuse = request.fuse;
  options.rules = false;
  std::vector<FusionPattern> patterns = patterns_of(request);
  if (rules.target)
    patterns.insert(patterns.begin(), rules.target->composites().begin(), rules.target->composites().end());
  options.patterns = &patterns;
  return make_plan(prepared, options);
}

/// What equalised tensors have is retaken, of what they were by their factors: that is one model for both looks.
/// Ranges alone follow from those of the channels.
std::vector<CalibratedTensor> tensors_to_retake(const QuantizedModel& made, Calibration&& first,
                                                const std::vector<std::string>& values, const CalibrateOptions& with,
                                                const MethodChoice& method) {
  std::vector<CalibratedTensor> tensors;
  for (size_t i = 0; i < values.size(); ++i) {
    TensorStatistics& s = first.tensors[i];
    tensors.push_back({values[i], static_cast<size_t>(std::max(s.axis, 0))});
    if (with.histograms && s.elements > 0 && s.histogram.empty()) continue;  // of a scales file without them
    if (!with.channels) s.forget_channels();
    tensors.back().known = std::move(s);
  }
  if (with.histograms || method.method != Method::minmax)
    for (const EqualizedTensor& e : made.equalized)
      tensors[e.index].factors = e.inverse, tensors[e.index].known.reset();
  return tensors;
}

std::optional<double> least_of_mul(const EqualizeChoice& choice, const CompilerRules& rules) {
  if (choice.alpha) return -HUGE_VAL;  // wanted, whatever it gains
  return rules.equalize_anywhere ? std::optional(rules.equalize_gain) : std::nullopt;
}

/// Calibrates; where channels are equalised, samples are read once before that, and once more for what it changed.
void find_ranges(QuantizedModel& made, const Samples& samples, const QuantizeOptions& options,
                 const CompilerRules& rules) {
  // a file serves other methods too
  CalibrateOptions with{.histograms = needs_histograms(options.method) || !options.scales_file.empty(),
                        .channels = options.bias_correction,
                        .scales_file = options.scales_file,
                        .seconds_between_files = options.seconds_between_files,
                        .run = options.run};
  const std::vector<std::string> values = names_of(made.placement);
  ObservedModel model(made.reference, values, options.run, true);
  std::vector<CalibratedTensor> tensors = calibrated_tensors(made.placement);
  if (options.equalize.on) {
    CalibrateOptions channels = with;
    channels.channels = true;
    if (!with.scales_file.empty()) channels.scales_file += ".channels";
    Calibration first = calibrate(made.reference, made.placement, tensors, model, samples, channels);
    std::vector<size_t> fixed;
    for (const SharedScale& group : made.shared) fixed.insert(fixed.end(), group.tensors.begin(), group.tensors.end());
    made.equalized = equalize(made.reference, made.placement, first.tensors, fixed, options.equalize,
                              least_of_mul(options.equalize, rules));
    tensors = tensors_to_retake(made, std::move(first), values, with, options.method);
  }
  made.calibration = calibrate(made.reference, made.placement, tensors, model, samples, with);
}

}  // namespace

PreparedModel prepare_model(const Graph& model, const QuantizeOptions& options) {
  CompilationOptions compile;
  compile.dims = options.dims;
  const TargetInfo target = parse_target("host");
  Compilation compilation(model, target, std::move(compile));
  compilation.run_to(Milestone::prepared);
  PreparedModel made{std::move(compilation.prepared), {}};
  made.plan =
      options.given_plan ? *options.given_plan : plan_of_modules(made.graph, rules_of(options.compiler), options.plan);
  if (made.plan.model != model_hash(made.graph))
    throw fail(E::stale_plan, "the plan was made for another model").hint("make the plan again, with the same --dim");
  return made;
}

QuantizedModel place_graph(const Graph& model, const QuantizeOptions& options) {
  return place_graph(prepare_model(model, options), options);
}

QuantizedModel place_graph(const PreparedModel& prepared, const QuantizeOptions& options) {
  const CompilerRules rules = rules_of(options.compiler);
  QuantizedModel made;
  made.plan = prepared.plan;
  made.placement = place(prepared.graph, prepared.plan, placement_request(options, rules));
  made.reference = prepare_products(prepared.graph, made.placement, rules.results);
  made.shared = link_scales(made.reference, made.placement, options.sharing);
  for (const PlacedTensor& placed : made.placement.tensors) made.before.tensors.push_back(placed.tensor);
  for (const Node* node : made.reference.nodes())
    if (!node->outputs.empty()) made.before.outputs[node->id] = value_name(*node->outputs.front());
  return made;
}

void write_codes(QuantizedModel& made, const QuantizeOptions& options) {
  const CompilerRules rules = rules_of(options.compiler);
  QuantizedGraph quantized = insert_pairs(made.reference, made.placement, made.codes,
                                          {.bias_codes = rules.bias_codes,
                                           .added_bias_codes = rules.bias_codes && rules.results,
                                           .per_channel = rules.per_channel,
                                           .window_sums = options.window_sums,
                                           .int16_pairs = options.int16_pairs.value_or(rules.int16_pairs),
                                           .means = options.bias_correction ? &made.calibration.tensors : nullptr});
  made.graph = std::move(quantized.graph);
  keep_record(made.graph, rules.name, made.placement);
  made.products = std::move(quantized.products);
  warn_of_products(made);
}

QuantizedModel quantize_graph(const Graph& model, const Samples& samples, const QuantizeOptions& options) {
  const CompilerRules rules = rules_of(options.compiler);
  const DataCodes data = activations_of(options, rules);
  QuantizedModel made = place_graph(model, options);
  if (made.placement.tensors.empty()) {
    made.graph = made.reference.clone();
    made.warnings.emplace_back("no module is quantised: the model is as it was");
    return made;
  }
  find_ranges(made, samples, options, rules);
  drop_unseen(made);
  choose_codes(made, options, data);
  write_codes(made, options);
  return made;
}

}  // namespace opfuse::quantization
