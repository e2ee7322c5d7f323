// Judged by what stands in the graph: DequantizeLinear in front of data and weights, the types and zero points of their
// codes, what the bias is, and whether a QuantizeLinear stands behind. A compiler may still choose otherwise: these are
// its documented conditions, as its target's file states them.
#include "quantize/int8_support.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "fusion/grouping.hpp"
#include "ops/clip.hpp"
#include "ops/conv.hpp"
#include "ops/is_a.hpp"
#include "ops/quantize.hpp"
#include "ops/relu.hpp"
#include "quantize/linear_size.hpp"
#include "quantize/pair_codes.hpp"

namespace opfuse::quantization {
namespace {

const Node* dequantizer(const Value* value) {
  while (value && value->producer && value->producer->op->kind == OpKind::injective && !value->producer->body)
    value = value->producer->input(0);  // weights and codes behind a reshape or a transpose
  return value && value->producer && is_a<DequantizeLinear>(*value->producer) ? value->producer : nullptr;
}

bool zero_point_is_0(const Node& dequantize) {
  const Value* zero = dequantize.input(2);
  if (!zero) return true;
  if (!zero->is_constant()) return false;
  for (int64_t i = 0; i < zero->constant->elements(); ++i)
    if (zero->constant->integer(i) != 0) return false;
  return true;
}

/// A QuantizeLinear behind the product, past what the compiler takes into it.
bool result_is_quantized(const Node& product) {
  const Node* next = product.output()->only_reader();
  while (next && (is_a<Relu>(*next) || is_a<Clip>(*next))) next = next->output()->only_reader();
  return next && is_a<QuantizeLinear>(*next);
}

std::optional<Decline> refuse_data(const Node& product, const Node& data, const CompilerRules& rules) {
  const DType codes = data.input(0)->type.dtype;
  if (codes != DType::u8 && codes != DType::i8)
    return Decline{"wide_codes", fmt::format("its data are {} codes", name_of(codes)), {}};
  const bool by_channel = data.input(1)->is_constant() && data.input(1)->constant->elements() != 1;
  if (by_channel && !(rules.depthwise_scales && is_depthwise(product)))
    return Decline{"scale_per_channel", "its data have a scale for each channel", {}};
  if (rules.affine) return std::nullopt;
  if (codes == DType::u8 && rules.activations != DataCodes::by_sign)
    return Decline{"unsigned_codes", "its data are u8 codes, and i8 ones are taken", {}};
  if (!zero_point_is_0(data)) return Decline{"zero_point", "its data have a zero point that is not 0", {}};
  return std::nullopt;
}

/// Whether some pair of its weights, where they are i8 codes, is beyond what 16 bits hold.
bool pairs_overflow(const Node& product) {
  const Node* weights = product.input(1)->producer;
  if (!weights || !is_a<DequantizeLinear>(*weights) || !weights->input(0)->is_constant() || is_depthwise(product))
    return false;
  const Tensor& codes = *weights->input(0)->constant;
  if (codes.dtype() != DType::i8 || codes.rank() < 2 || (codes.rank() > 2 && !is_a<Conv>(product))) return false;
  const PairOrder order(codes.sizes(), output_axis(product));
  const auto all = codes.view<int8_t>();
  for (int64_t o = 0; o < order.outputs(); ++o)
    for (int64_t p = 0; p + 1 < order.length(); p += order.step())
      if (!pair_fits(all[static_cast<size_t>(order.index(o, p))], all[static_cast<size_t>(order.index(o, p + 1))]))
        return true;
  return false;
}

}  // namespace

std::optional<Decline> refuse_codes(const Node& product, const CompilerRules& rules) {
  const Node* data = dequantizer(product.input(0));
  const Node* weights = dequantizer(product.input(1));
  if (!data) return Decline{"no_pair", "its data have no pair", {}};
  if (!weights) return Decline{"float_weights", "its weights are not codes", {}};
  if (!rules.integer) return Decline{"dequantized", "products are computed in float there", {}};
  if (auto why = refuse_data(product, *data, rules)) return why;
  if (!rules.affine && !zero_point_is_0(*weights))
    return Decline{"asymmetric_weights", "its weights have zero points that are not 0", {}};
  if (const Node* bias = product.input(2) ? dequantizer(product.input(2)) : nullptr;
      bias && !rules.bias_codes && !rules.affine)
    return Decline{"bias_codes", "its bias is i32 codes, and float is taken", {}};
  if (rules.results && is_a<Conv>(product) && !result_is_quantized(product))
    return Decline{"no_result_pair", "no QuantizeLinear follows it", {}};
  return std::nullopt;
}

std::vector<ModuleSupport> int8_support(const Graph& graph, const FusionPlan& plan,
                                        const std::vector<CompilerRules>& compilers) {
  const auto is_pair = [](const Node* node) { return is_a<DequantizeLinear>(*node); };
  std::vector<ModuleSupport> modules;
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), is_pair)) return modules;
  const NodeNames names(graph);
  std::map<std::string, std::string> owner;
  for (const Candidate* c : plan.applied())
    for (const std::string& node : c->nodes) owner.emplace(node, c->id);
  for (const Node* node : graph.nodes()) {
    if (node->body || !holds_product(*node)) continue;
    const std::string& name = names.of(node);
    const auto at = owner.find(name);
    ModuleSupport support{at == owner.end() ? name : at->second, name, {}, {}};
    for (const CompilerRules& rules : compilers) support.compilers.emplace_back(rules.name, refuse_codes(*node, rules));
    const bool overflow = pairs_overflow(*node);
    for (size_t i = 0; overflow && i < compilers.size(); ++i)
      if (compilers[i].int16_pairs && !support.compilers[i].second) support.may_saturate.push_back(compilers[i].name);
    modules.push_back(std::move(support));
  }
  return modules;
}

std::string text_of(const ModuleSupport& support) {
  std::string codes;
  std::map<std::string, std::string> floats;  // by reason
  for (const auto& [compiler, why] : support.compilers) {
    std::string& list = why ? floats[fmt::format("[{}: {}]", why->code, why->message)] : codes;
    list += (list.empty() ? "" : ", ") + compiler;
  }
  std::string text = fmt::format("MODULE {}:", support.module);
  if (!codes.empty()) text += " int8 in " + codes;
  const char* separator = codes.empty() ? "" : ";";
  for (const auto& [why, list] : floats) {
    text += fmt::format("{} f32 in {} {}", separator, list, why);
    separator = ";";
  }
  if (!support.may_saturate.empty())
    text += fmt::format("; sums of pairs may saturate without VNNI in {}", fmt::join(support.may_saturate, ", "));
  return text;
}

}  // namespace opfuse::quantization
