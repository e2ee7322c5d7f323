// Numbers as they are; a reader rounds.
#include "quantize/report_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "quantize/compiler_rules.hpp"
#include "quantize/multiply_adds.hpp"
#include "quantize/weight_codes.hpp"

namespace opfuse::quantization {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const std::vector<LeftModule>& modules) {
  Json list = Json::array();
  for (const LeftModule& m : modules)
    list.push_back({{"group", m.id}, {"module", m.module}, {"code", m.reason.code}, {"message", m.reason.message}});
  return list;
}

Json tensors_json(const QuantizedModel& made) {
  Json list = Json::array();
  for (size_t i = 0; i < made.placement.tensors.size(); ++i) {
    const PlacedTensor& placed = made.placement.tensors[i];
    if (i >= made.codes.size()) {  // places alone
      list.push_back({{"tensor", placed.tensor}, {"groups", placed.modules}});
      continue;
    }
    const TensorStatistics& s = made.calibration.tensors[i];
    const Codes& codes = made.codes[i];
    Json row{{"tensor", placed.tensor},
             {"groups", placed.modules},
             {"dtype", name_of(codes.dtype)},
             {"scale", codes.scale},
             {"zero_point", codes.zero},
             {"range", {s.low, s.high}},
             {"codes", {codes.low(), codes.high()}}};
    if (placed.result || placed.shared) row["for_compiler"] = true;
    if (!s.histogram.empty()) {
      const CodesLoss loss = loss_of(s, codes);
      row["own_sqnr"] = loss.sqnr;
      row["saturated"] = loss.saturated;
    }
    list.push_back(std::move(row));
  }
  return list;
}

Json products_json(const QuantizedModel& made) {
  Json list = Json::array();
  for (const QuantizedProduct& p : made.products) {
    Json row{{"node", p.name}, {"group", p.module}, {"data", p.data}, {"weight_sqnr", p.weight_sqnr}};
    if (p.dead_channels > 0) row["dead_channels"] = p.dead_channels;
    if (p.moved_codes > 0) row["moved_codes"] = p.moved_codes;
    if (p.cut_codes > 0) row["cut_codes"] = p.cut_codes;
    if (p.bias_shift > 0) row["bias_shift"] = p.bias_shift;
    if (!p.note.empty()) row["note"] = p.note;
    list.push_back(std::move(row));
  }
  return list;
}

Json shared_json(const QuantizedModel& made) {
  Json list = Json::array();
  for (const SharedScale& group : made.shared) {
    Json tensors = Json::array();
    for (size_t k = 0; k < group.tensors.size(); ++k)
      tensors.push_back({{"tensor", made.placement.tensors[group.tensors[k]].tensor}, {"cost_db", group.cost[k]}});
    list.push_back({{"across", group.adds ? "adds" : "moves"}, {"tensors", std::move(tensors)}});
  }
  return list;
}

Json equalized_json(const QuantizedModel& made) {
  Json list = Json::array();
  for (const EqualizedTensor& e : made.equalized)
    list.push_back({{"tensor", e.tensor}, {"alpha", e.alpha}, {"folded", e.folded}, {"gain_db", e.gain}});
  return list;
}

Json layer_json(const LayerAgreement& layer, const Agreement& agreement) {
  return {{"tensor", layer.tensor},
          {"sqnr", layer.noise.sqnr()},
          {"before", layer.before},
          {"saturated",
           layer.elements > 0 ? static_cast<double>(layer.saturated) / static_cast<double>(layer.elements) : 0},
          {"worst", {{"sample", agreement.names[layer.worst_sample]}, {"sqnr", layer.worst_sqnr}}}};
}

}  // namespace

Json agreement_json(const Agreement& a) {
  Json layers = Json::array(), outputs = Json::array();
  for (const LayerAgreement& layer : a.layers) layers.push_back(layer_json(layer, a));
  for (const OutputAgreement& o : a.outputs) {
    Json worst = Json::array();
    for (const auto& [sqnr, sample] : o.worst) worst.push_back({{"sample", a.names[sample]}, {"sqnr", sqnr}});
    outputs.push_back(
        {{"output", o.output},
         {"sqnr", o.noise.sqnr()},
         {"cosine", o.cosine},
         {"top1", o.rows > 0 ? Json(static_cast<double>(o.same_top) / static_cast<double>(o.rows)) : Json()},
         {"rows", o.rows},
         {"worst", std::move(worst)}});
  }
  Json out{{"samples", a.samples}, {"outputs", std::move(outputs)}, {"layers", std::move(layers)}};
  const LayerAgreement* drop = a.largest_drop();
  out["largest_drop"] = drop ? layer_json(*drop, a) : Json();
  return out;
}

Json search_json(const Search& search) {
  Json order = Json::array(), frontier = Json::array(), left = Json::array(), returned = Json::array();
  for (const Sensitivity& s : search.left) left.push_back(s.module);
  for (const Returned& r : search.returned)
    returned.push_back({{"group", r.module}, {"metric", r.metric}, {"drop", r.drop}, {"held", r.held}});
  for (const Sensitivity& s : search.order)
    order.push_back({{"group", s.module}, {"sqnr", s.sqnr}, {"multiply_adds", s.multiply_adds}});
  for (const FrontierPoint& p : search.frontier)
    frontier.push_back(
        {{"left", p.left}, {"share", p.share}, {"metric", p.metric}, {"drop", p.drop}, {"predicted_ms", p.predicted}});
  return {{"sensitivity", std::move(order)}, {"frontier", std::move(frontier)},
          {"returned", std::move(returned)}, {"left", std::move(left)},
          {"chosen", search.chosen},         {"predicted_float_ms", search.predicted_float}};
}

Json report_json(const QuantizedModel& made, const QuantizeOptions& options,
                 const std::optional<Agreement>& agreement) {
  const CompilerRules rules = rules_of(options.compiler);
  Json out{{"for", rules.name},
           {"method", options.method.text()},
           {"activations", name_of(options.activations.value_or(rules.activations))},
           {"bias", rules.bias_codes ? "i32" : "f32"},
           {"bias_correction", options.bias_correction},
           {"weight_rounding", rounding_name(options.window_sums)},
           {"pair_sums", pair_sums_name(options.int16_pairs.value_or(rules.int16_pairs))},
           {"equalize", options.equalize.text()},
           {"equalized", equalized_json(made)},
           {"shared_scales", shared_json(made)},
           {"presets", options.presets.value_or(rules.presets)},
           {"calibrated_with", made.calibration.samples},
           {"points", made.placement.points},
           {"pairs", made.placement.tensors.size()},
           {"tensors", tensors_json(made)},
           {"products", products_json(made)},
           {"float", json_of(made.placement.left)},
           {"given", json_of(made.placement.given)},
           {"warnings", made.warnings}};
  const MultiplyAdds work = multiply_adds_in_codes(made.reference, made.placement);
  out["multiply_adds"] = {{"codes", work.codes}, {"all", work.all}};
  out["agreement"] = agreement ? agreement_json(*agreement) : Json();
  return out;
}

}  // namespace opfuse::quantization
