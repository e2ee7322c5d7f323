#include "shape/channel_factors.hpp"

#include "fusion/grouping.hpp"
#include "ir/outline.hpp"
#include "ops/conv.hpp"

namespace opfuse {
namespace {

/// The convolution a group starts with.
const Node* convolution_of(const Node& node) {
  if (node.body && node.op != fused_op()) return nullptr;
  const Node& first = node.body ? *node.body->nodes().front() : node;
  return first.is("conv") ? &first : nullptr;
}

const Value* data_of(const Node& node, const Node& conv) {
  if (!node.body) return conv.input(0);
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.body->inputs()[i] == conv.input(0)) return node.inputs[i];
  return nullptr;
}

/// A lone product, as a node or as a group.
bool is_product(const Node& node) {
  if (!node.body) return node.is("mul");
  return node.op == fused_op() && node.body->nodes().size() == 1 && node.body->nodes().front()->is("mul");
}

/// One factor for each channel of each image.
bool is_gated(const Node& product) {
  if (product.inputs.size() != 2 || !product.output()->type.shape.ranked) return false;
  const Shape& y = product.output()->type.shape;
  if (y.rank() != 4) return false;
  const auto is_gate = [&](const Value* v) {
    const Shape& g = v->type.shape;
    return g.ranked && g.rank() == 4 && g[1] == y[1] && g[2] == Dim(1) && g[3] == Dim(1) && !v->is_constant();
  };
  const Value *a = product.input(0), *b = product.input(1);
  return (is_gate(b) && a->type.shape == y) || (is_gate(a) && b->type.shape == y);
}

bool is_pointwise(const Node& conv) {
  const Shape& w = conv.input(1)->type.shape;
  return conv.as<Conv>().group == 1 && w.rank() == 4 && w[2] == Dim(1) && w[3] == Dim(1);
}

ChainVerdict try_factor(Graph& graph, Node* product, Node* reader, const ChainAdvice& advice) {
  ChainVerdict verdict = verdict_of("factor", *product, *reader);
  verdict.refused = read_elsewhere(graph, *product->output());
  if (verdict.refused) return verdict;
  const Outline how{fused_op(), "mul+" + verdict.second, "mul+" + reader->pattern};
  verdict.refused = advice(*outline_copy(graph, {product, reader}, how).node);
  if (!verdict.refused) expand_groups(*outline(graph, {product, reader}, how)->body);
  return verdict;
}

}  // namespace

std::vector<ChainVerdict> join_channel_factors(Graph& fused, const ChainAdvice& advice) {
  std::vector<std::pair<Node*, Node*>> pairs;  // no node is in two of them
  for (Node* reader : fused.nodes()) {
    const Node* conv = convolution_of(*reader);
    if (!conv || !is_pointwise(*conv)) continue;
    const Value* data = data_of(*reader, *conv);
    Node* product = data ? data->producer : nullptr;
    if (product && is_product(*product) && is_gated(*product)) pairs.emplace_back(product, reader);
  }
  std::vector<ChainVerdict> verdicts;
  for (const auto& [product, reader] : pairs) verdicts.push_back(try_factor(fused, product, reader, advice));
  return verdicts;
}

}  // namespace opfuse
