// DecomposeMultiheadAttention: the in-projection of a self-attention becomes one module.
//
//       .-- Linear -- [slice, reshape, transpose, * s]* -- q --.                         .-- ... -- q --.
//   x --+-- Linear -- ...                                  k   attention   =   x -- mha_in_projection -- k  attention
//       '-- Linear -- ...                                  v --'                         '-- ... -- v --'
//
// One Linear for all three, whose result is cut, or one for each: the module holds them as they are. Refused with the
// reason: cross-attention, computed weights, queries, keys or values without a projection.
#include <fmt/format.h>

#include <algorithm>

#include "ir/outline.hpp"
#include "match/attention.hpp"
#include "passes/linear_product.hpp"
#include "passes/recompose.hpp"

namespace opfuse {

namespace {

constexpr const char* kPass = "decompose-attention";
constexpr const char* kRule = "DecomposeMultiheadAttention";

struct Linear {
  Node* product = nullptr;
  Node* add = nullptr;  // bias of a matmul
  LinearProduct operands;
};

Decline no(std::string code, std::string message) { return {std::move(code), std::move(message), {}}; }

std::optional<Decline> read_product(Linear& l, const char* role) {
  if (!l.product || (!l.product->is("matmul") && !l.product->is("gemm")))
    return no("no_projection", fmt::format("{} comes from {}, which is no Linear", role,
                                           l.product ? describe(*l.product) : "a graph input"));
  auto read = linear_product(*l.product);
  if (auto* decline = std::get_if<Decline>(&read)) return std::move(*decline);
  l.operands = std::get<LinearProduct>(read);
  const Value* bias = l.operands.bias;
  if (bias && !(bias->is_constant() && bias->constant->elements() == l.operands.out))
    return no("bias_shape",
              fmt::format("the bias of {} is not a constant of {} numbers", describe(*l.product), l.operands.out));
  return std::nullopt;
}

std::optional<Decline> read_linear(const Graph& graph, Value* value, const char* role, Linear& l) {
  Node* node = value->producer;
  if (node && node->is("add")) {
    const size_t at = node->inputs[0]->is_constant() ? 0 : 1;
    Value* bias = node->inputs[at];
    Node* product = node->inputs[1 - at]->producer;
    if (bias->is_constant() && product && graph.read_count(product->output()) == 1) {
      l.product = product;
      if (auto decline = read_product(l, role)) return decline;
      if (l.operands.bias || bias->constant->elements() != l.operands.out)
        return no("bias_shape", fmt::format("{} adds {} to {}", describe(*node), describe(bias), describe(*product)));
      l.add = node;
      return std::nullopt;
    }
  }
  l.product = node;
  return read_product(l, role);
}

/// The Linears of q, k and v, each once; all read one value.
std::optional<Decline> find_projection(const Graph& graph, const AttentionParts& parts, std::vector<Linear>& linears) {
  const std::pair<const char*, Value*> roles[] = {
      {"q", movement_source(parts.q)}, {"k", movement_source(parts.k)}, {"v", movement_source(parts.v)}};
  std::vector<const Value*> seen;
  for (const auto& [role, source] : roles) {
    if (std::find(seen.begin(), seen.end(), source) != seen.end()) continue;
    seen.push_back(source);
    Linear linear;
    if (auto decline = read_linear(graph, source, role, linear)) return decline;
    if (!linears.empty() && linear.operands.x != linears.front().operands.x)
      return no("cross_attention",
                fmt::format("q is projected from {}, {} from {}", describe(linears.front().operands.x), role,
                            describe(linear.operands.x)));
    linears.push_back(linear);
  }
  return std::nullopt;
}

std::optional<Decline> decompose(Graph& graph, const AttentionParts& parts, std::string& what) {
  std::vector<Linear> linears;
  if (auto decline = find_projection(graph, parts, linears)) return decline;
  std::vector<Node*> nodes;
  for (const Linear& l : linears) {
    nodes.push_back(l.product);
    if (l.add) nodes.push_back(l.add);
  }
  std::sort(nodes.begin(), nodes.end(),
            [&](const Node* a, const Node* b) { return graph.position(a) < graph.position(b); });
  what = linears.size() == 1 ? "the Linear of q, k and v" : fmt::format("{} Linears of one value", linears.size());
  outline(graph, nodes, {composite_op(), kInProjection, {}});
  return std::nullopt;
}

bool has_projection(const AttentionParts& parts) {
  const Value* source = movement_source(parts.q);
  return source->producer && operator_name(*source->producer) == kInProjection;
}

}  // namespace

bool decompose_attention(Graph& graph, RewriteReport* report) {
  bool changed = false;
  const std::vector<Node*> nodes = graph.nodes();
  std::vector<Node*> attentions;
  for (Node* node : nodes)
    if (attention_parts(*node)) attentions.push_back(node);
  for (Node* node : attentions) {
    const AttentionParts parts = *attention_parts(*node);
    if (has_projection(parts)) continue;
    const std::string where = node->name();
    std::string what;
    if (auto decline = decompose(graph, parts, what)) {
      if (report) report->declined(kPass, kRule, where, std::move(*decline));
      continue;
    }
    if (report) report->applied(kPass, kRule, where, what);
    changed = true;
  }
  return changed;
}

}  // namespace opfuse
