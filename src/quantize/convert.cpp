#include "quantize/convert.hpp"

#include <cmath>

#include "base/fail.hpp"
#include "quantize/agreement.hpp"
#include "quantize/data_powers.hpp"
#include "quantize/report_json.hpp"

namespace opfuse::quantization {
namespace {

using Json = nlohmann::ordered_json;

Json agreement_of(const Graph& reference, const Graph& graph, const ConvertChoice& choice, const Samples* judging,
                  const RunOptions& run) {
  if (!judging || choice.compare_samples == 0) return {};
  const Samples some = some_of(*judging, static_cast<size_t>(choice.compare_samples));
  return agreement_json(measure_agreement(reference, graph, some, run));
}

ConvertedModel narrowed(const Graph& model, const ConvertChoice& choice, const Samples* judging,
                        const RunOptions& run) {
  if (choice.block || choice.min_linear || !choice.skip.empty() || !choice.only.empty())
    throw fail(E::bad_option, "blocks and choices of products are for codes of weights, not for {}", choice.to);
  NarrowedModel made = narrow_floats(model, parse_narrow(choice.to));
  Json report{{"schema", "opfuse.convert/1"}, {"to", choice.to}};
  report.update(converted_json(made));
  report["agreement"] = agreement_of(made.reference, made.graph, choice, judging, run);
  return {std::move(made.graph), std::move(report), std::move(made.warnings)};
}

ConvertedModel coded(const Graph& model, const ConvertChoice& choice, const Samples* data, const Samples* judging,
                     const RunOptions& run) {
  CodeWeightsOptions options;
  options.type = parse_coded_weights(choice.to);
  options.block = choice.block.value_or(default_block(options.type));
  options.skip = choice.skip, options.only = choice.only;
  options.min_linear = choice.min_linear.value_or(options.min_linear);
  options.threads = run.threads, options.progress = run.progress;
  DataPowers powers;
  if (data) powers = measure_powers(model, *data, run), options.powers = &powers;
  CodedModel made = code_weights(model, options);
  Json report{{"schema", "opfuse.code-weights/1"}, {"to", choice.to}};
  report.update(coded_json(made, options.block));
  report["agreement"] = agreement_of(made.reference, made.graph, choice, judging, run);
  return {std::move(made.graph), std::move(report), {}};
}

}  // namespace

ConvertedModel convert_model(const Graph& model, const ConvertChoice& choice, const Samples* data,
                             const Samples* judging, const RunOptions& run) {
  if (choice.compare_samples < 0) throw fail(E::bad_option, "{} samples to compare", choice.compare_samples);
  if (choice.to.ends_with("-weights")) return coded(model, choice, data, judging, run);
  return narrowed(model, choice, judging, run);
}

Json converted_json(const NarrowedModel& made) {
  return {{"values", made.values},
          {"casts", made.casts},
          {"constant_bytes", {made.bytes_before, made.bytes_after}},
          {"kept_f32", made.kept},
          {"warnings", made.warnings}};
}

Json coded_json(const CodedModel& made, int64_t block) {
  Json products = Json::array(), left = Json::array();
  for (const CodedProduct& p : made.products)
    products.push_back({{"node", p.node},
                        {"shape", {p.depth, p.columns}},
                        {"weight_sqnr", std::isfinite(p.sqnr) ? Json(p.sqnr) : Json()},
                        {"clipped", p.clipped},
                        {"alpha", p.alpha},
                        {"gain_db", p.gain},
                        {"folded", p.folded},
                        {"bytes", {p.bytes_before, p.bytes_after}}});
  for (const auto& l : made.left) left.push_back({{"node", l.node}, {"code", l.why.code}, {"message", l.why.message}});
  return {{"block", block},
          {"constant_bytes", {made.bytes_before, made.bytes_after}},
          {"products", std::move(products)},
          {"float", std::move(left)}};
}

}  // namespace opfuse::quantization
