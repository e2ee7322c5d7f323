// DecomposeMultiheadAttention: the in-projection of a self-attention becomes one module.
//
//       .-- Linear -- [slice, reshape, transpose, * s]* -- q --.                         .-- ... -- q --.
//   x --+-- Linear -- ...                                  k   attention   =   x -- mha_in_projection -- k  attention
//       '-- Linear -- ...                                  v --'                         '-- ... -- v --'
//
// One Linear for all three, whose result is cut, or one for each: the module holds them as they are. Heads may be
// normalised, turned in part, and joined to a cache of earlier keys and values on the way. Refused with the reason:
// cross-attention, computed weights, queries, keys or values without a projection.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/outline.hpp"
#include "match/attention.hpp"
#include "match/qdq.hpp"
#include "passes/linear_product.hpp"
#include "passes/passes.hpp"
#include "passes/recompose.hpp"

namespace opfuse {

namespace {

constexpr const char* kPass = "decompose-attention";
constexpr const char* kRule = "DecomposeMultiheadAttention";

struct Linear {
  Node* product = nullptr;
  std::optional<QdqPair> pair;  // between the two
  Node* add = nullptr;          // bias of a matmul
  LinearProduct operands;
};

Decline no(std::string code, std::string message) { return {std::move(code), std::move(message), {}}; }

/// A constant of as many numbers, also a dequantised one.
bool is_row(const Value& bias, int64_t numbers) {
  return is_constant_or_dequantized(&bias) && bias.type.shape.ranked && bias.type.shape.elements() == Dim(numbers);
}

std::optional<Decline> read_product(Linear& l, const char* role) {
  if (!l.product || (!l.product->is("matmul") && !l.product->is("gemm")))
    return no("no_projection", fmt::format("{} comes from {}, which is not a Linear", role,
                                           l.product ? describe(*l.product) : "a graph input"));
  auto read = linear_product(*l.product, Weights::constant_or_dequantized);
  if (auto* decline = std::get_if<Decline>(&read)) return std::move(*decline);
  l.operands = std::get<LinearProduct>(read);
  const Value* bias = l.operands.bias;
  if (bias && !is_row(*bias, l.operands.out))
    return no("bias_shape",
              fmt::format("the bias of {} is not a constant of {} numbers", describe(*l.product), l.operands.out));
  return std::nullopt;
}

bool read_once(const Graph& graph, const QdqPair& pair) {
  return graph.read_count(pair.quantize->output()) == 1 && graph.read_count(pair.dequantize->output()) == 1;
}

std::optional<Decline> read_linear(const Graph& graph, Value* value, const char* role, Linear& l) {
  Node* node = value->producer;
  if (node && node->is("add")) {
    const size_t at = is_constant_or_dequantized(node->inputs[0]) ? 0 : 1;
    Value* bias = node->inputs[at];
    Value* result = node->inputs[1 - at];
    l.pair = qdq_pair(result);
    if (l.pair) result = l.pair->quantize->input(0);
    const bool alone = graph.read_count(result) == 1 && (!l.pair || read_once(graph, *l.pair));
    if (is_constant_or_dequantized(bias) && result->producer && alone) {
      l.product = result->producer;
      if (auto decline = read_product(l, role)) return decline;
      if (l.operands.bias || !is_row(*bias, l.operands.out))
        return no("bias_shape", fmt::format("{} adds {} to {}", describe(*node), describe(bias), describe(*l.product)));
      l.add = node;
      return std::nullopt;
    }
    l.pair.reset();
  }
  l.product = node;
  return read_product(l, role);
}

Value* projected(Value* value);

/// What all parts of a Concat come from, but for those from graph inputs, as caches are.
Value* joined(const Node& concat) {
  Value* source = nullptr;
  for (Value* part : concat.inputs) {
    Value* behind = projected(part);
    if (!behind->producer) continue;
    if (source && behind != source) return nullptr;
    source = behind;
  }
  return source;
}

/// What q, k or v was made from by movements, Q/DQ pairs, norms of heads, and caches.
Value* projected(Value* value) {
  static constexpr std::array kNorms{"layer_norm", "rms_norm", "l2_norm"};
  value = movement_source(value);
  while (value->producer) {
    const Node& node = *value->producer;
    const bool norm = std::find(kNorms.begin(), kNorms.end(), operator_name(node)) != kNorms.end();
    const auto pair = qdq_pair(value);
    Value* next = pair ? pair->quantize->input(0) : node.is("concat") ? joined(node) : norm ? node.input(0) : nullptr;
    if (!next) break;
    value = movement_source(next);
  }
  return value;
}

/// The Linears of q, k and v, each once; all read one value.
std::optional<Decline> find_projection(const Graph& graph, const AttentionParts& parts, std::vector<Linear>& linears) {
  const std::pair<const char*, Value*> roles[] = {
      {"q", projected(parts.q)}, {"k", projected(parts.k)}, {"v", projected(parts.v)}};
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
  std::vector<Node*> nodes;  // of q first, whose name the module has, in whatever order the file has them
  for (const Linear& l : linears) {
    nodes.push_back(l.product);
    if (l.pair) nodes.insert(nodes.end(), {l.pair->quantize, l.pair->dequantize});
    if (l.add) nodes.push_back(l.add);
  }
  what = linears.size() == 1 ? "the Linear of q, k and v" : fmt::format("{} Linears of one value", linears.size());
  outline(graph, nodes, {composite_op(), kInProjection, {}});
  graph.sort_topologically();  // what dequantises the weights of k may stand behind the Linear of v
  return std::nullopt;
}

bool has_projection(const AttentionParts& parts) {
  const Value* source = projected(parts.q);
  return source->producer && operator_name(*source->producer) == kInProjection;
}

}  // namespace

static bool run(Graph& graph, PassContext& context) {
  RewriteReport* const report = context.report;
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

Pass decompose_attention() {
  return {"decompose-attention", "The projections of q, k and v of a self-attention become one module.", run, {}};
}

}  // namespace opfuse
