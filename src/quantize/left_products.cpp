// A convolution, matrix product or recurrent cell by itself, or in a group whose pattern declares no points.
#include "quantize/left_products.hpp"

#include <fmt/format.h>

#include <map>

#include "match/pattern.hpp"
#include "ops/conv_transpose.hpp"
#include "ops/is_a.hpp"
#include "ops/quantize.hpp"
#include "ops/recurrent.hpp"
#include "quantize/linear_size.hpp"

namespace opfuse::quantization {
namespace {

/// Operators that multiply by weights and always stay in float.
bool is_other_product(const Node& node) {
  return is_a<ConvTranspose>(node) || is_a<Lstm>(node) || is_a<Gru>(node) || is_a<Rnn>(node);
}

bool reads_codes(const Node& node) {
  const Node* made = node.input(0)->producer;
  return made && is_a<DequantizeLinear>(*made);
}

Decline why_left(const Node& node, const Candidate* module) {
  if (is_other_product(node))
    return {"operator", fmt::format("{} is always computed in float", operator_name(node)), {}};
  if (auto why = unfit_weights(node)) return std::move(*why);
  if (module) return {"no_points", fmt::format("pattern {} has no Q/DQ points", module->pattern), {module->pattern}};
  return {"no_module", "it is in no module of the plan", {}};
}

}  // namespace

bool is_product(const Node& node) { return holds_product(node) || is_other_product(node); }

std::vector<LeftModule> left_products(const Graph& graph, const FusionPlan& plan, const NodeNames& names) {
  std::map<const Node*, const Candidate*> modules;
  for (const Candidate* c : plan.applied())
    for (const std::string& name : c->nodes)
      if (const Node* node = names.find(name)) modules[node] = c;
  std::vector<LeftModule> left;
  for (const Node* node : graph.nodes()) {
    if (!is_product(*node)) continue;
    const auto at = modules.find(node);
    const Candidate* module = at == modules.end() ? nullptr : at->second;
    if ((module && !module->points.empty()) || reads_codes(*node)) continue;
    left.push_back({module ? module->id : names.of(node), module ? module->module : "", why_left(*node, module)});
  }
  return left;
}

}  // namespace opfuse::quantization
