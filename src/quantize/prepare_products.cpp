//     conv(x, w, b) -- batch_norm(scale, shift, mean, var)   =   conv(x, w f, (b - mean) f + shift),   f = scale /
//     sqrt(var + e)
//
// Codes are of the weights that are multiplied: a factor behind them would need another step. Done for convolutions
// that are quantised, in double, rounded once.
#include "quantize/prepare_products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/free_names.hpp"
#include "ir/outline.hpp"
#include "ir/value_name.hpp"
#include "match/pattern.hpp"
#include "ops/add.hpp"
#include "ops/conv.hpp"
#include "ops/hard_sigmoid.hpp"
#include "ops/is_a.hpp"
#include "ops/norm.hpp"
#include "ops/registry.hpp"
#include "quantize/linear_size.hpp"
#include "tensor/finite.hpp"

namespace opfuse::quantization {
namespace {

std::map<int, Node*> nodes_by_id(const Graph& graph) {
  std::map<int, Node*> nodes;
  for (Node* node : graph.nodes()) nodes[node->id] = node;
  return nodes;
}

bool foldable(const Node& conv, const Node* norm) {
  if (!norm || !is_a<BatchNorm>(*norm) || norm->input(0) != conv.output()) return false;
  const auto constant = [](const Value* v) { return !v || v->is_constant(); };
  return conv.input(1)->is_constant() && constant(conv.input(2)) &&
         std::all_of(norm->inputs.begin() + 1, norm->inputs.end(), constant);
}

/// The convolution that takes the place of both; null where its numbers would not be finite.
Node* fold(Graph& graph, FreeNames& names, Node* conv, Node* norm) {
  const Tensor& w = *conv->input(1)->constant;
  const Tensor* b = conv->input(2) ? &*conv->input(2)->constant : nullptr;
  const auto number = [&](size_t operand, int64_t c) { return norm->input(operand)->constant->real(c); };
  const int64_t channels = w.dim(0), each = channels > 0 ? w.elements() / channels : 0;
  Tensor weights(w.dtype(), w.sizes()), bias(w.dtype(), {channels});
  for (int64_t c = 0; c < channels; ++c) {
    const double factor = number(1, c) / std::sqrt(number(4, c) + norm->as<BatchNorm>().epsilon);
    for (int64_t i = c * each; i < (c + 1) * each; ++i) weights.set_real(i, w.real(i) * factor);
    bias.set_real(c, ((b ? b->real(c) : 0) - number(3, c)) * factor + number(2, c));
  }
  if (!all_finite(weights) || !all_finite(bias)) return nullptr;
  const std::string name = conv->input(1)->name;
  Value* folded = graph.add_constant(std::move(weights), name.empty() ? name : names.take(name + "_folded"));
  Node* made = graph.add_node(conv->op, conv->attrs_, {conv->input(0), folded, graph.add_constant(std::move(bias))}, 1,
                              united_sources({conv, norm}), conv, {conv->output()->type});
  take_over(graph, norm->output(), made->output());
  graph.erase(norm);
  graph.erase(conv);
  return made;
}

/// Nodes of a placement that became others.
void rename(Placement& placement, int old, const std::vector<int>& now) {
  for (PlacedTensor& placed : placement.tensors) {
    const auto at = std::find(placed.readers.begin(), placed.readers.end(), old);
    if (at == placed.readers.end()) continue;
    placed.readers.erase(at);
    placed.readers.insert(placed.readers.end(), now.begin(), now.end());
  }
  const auto at = std::find_if(placement.products.begin(), placement.products.end(),
                               [&](const PlacedProduct& p) { return p.node == old; });
  if (at == placement.products.end()) return;
  const PlacedProduct product = *at;
  placement.products.erase(at);
  for (int node : now) placement.products.push_back({node, product.name, product.module});
}

class Preparer {
 public:
  Preparer(const Graph& prepared, Placement& placement)
      : graph_(prepared.clone()), names_(graph_), placement_(placement) {}

  Graph run(bool for_operators) {
    name_values();
    const std::vector<PlacedProduct> products = placement_.products;
    for (const PlacedProduct& product : products) {
      Node* node = nodes_by_id(graph_).at(product.node);
      if (is_a<Conv>(*node))
        fold_behind(node);
      else if (node->body)
        inline_projections(node);
    }
    if (for_operators) write_hard_swish(), write_sums_before_norms();
    graph_.remove_dead_nodes();
    for (PlacedProduct& product : placement_.products) product.name = nodes_by_id(graph_).at(product.node)->name();
    return std::move(graph_);
  }

 private:
  void name_values() {
    for (PlacedTensor& placed : placement_.tensors)
      for (Value* value : graph_.values()) {
        if (value->id != placed.value) continue;
        if (value->name.empty()) value->name = names_.take(fmt::format("value_{}", value->id));
        placed.tensor = value->name;
      }
  }

  void fold_behind(Node* conv) {
    Node* norm = conv->output()->only_reader();
    if (!foldable(*conv, norm)) return;
    const int norm_value = norm->output()->id, old = conv->id;
    const Node* now = fold(graph_, names_, conv, norm);
    if (!now) return;
    rename(placement_, old, {now->id});
    for (PlacedTensor& placed : placement_.tensors)
      if (placed.value == norm_value) placed.value = now->output()->id;
  }

  void inline_projections(Node* node) {
    const int old = node->id;
    const std::map<int, Node*> before = nodes_by_id(graph_);
    const std::vector<Value*> results = inline_body(graph_, *node->body, node->inputs, node);
    std::map<int, int> values;
    for (size_t i = 0; i < results.size(); ++i) {
      values[node->outputs[i]->id] = results[i]->id;
      take_over(graph_, node->outputs[i], results[i]);
    }
    graph_.erase(node);
    std::vector<int> products;
    for (const Node* made : graph_.nodes())
      if (!before.contains(made->id) && holds_product(*made)) products.push_back(made->id);
    rename(placement_, old, products);
    for (PlacedTensor& placed : placement_.tensors)
      if (const auto at = values.find(placed.value); at != values.end()) placed.value = at->second;
  }

  /// x clip(x + 3, 0, 6) / 6, which passes made a composite, as x HardSigmoid(x).
  void write_hard_swish() {
    const std::vector<Node*> nodes = graph_.nodes();
    for (Node* node : nodes) {
      if (!node->body || node->label != "hard_swish" || node->outputs.size() != 1) continue;
      const auto data = [](const Value* v) { return !v->is_constant(); };
      const auto at = std::find_if(node->inputs.begin(), node->inputs.end(), data);
      if (at == node->inputs.end() || std::count_if(node->inputs.begin(), node->inputs.end(), data) != 1) continue;
      Value* x = *at;
      const std::vector<Source> sources = node->sources;
      Node* gate =
          graph_.add_node(op_named("hard_sigmoid"), AttrMap{{"alpha", 1.0 / 6}, {"beta", 0.5}}, {x}, 1, sources, node);
      Node* made = graph_.add_node(op_named("mul"), AttrMap{}, {x, gate->output()}, 1, sources, node);
      for (PlacedTensor& placed : placement_.tensors)
        if (placed.value == node->output()->id) placed.value = made->output()->id;
      rename(placement_, node->id, {gate->id, made->id});
      take_over(graph_, node->output(), made->output());
      graph_.erase(node);
    }
  }

  /// ONNX Runtime makes one operator of a residual Add and the LayerNormalization behind it, which takes rows number by
  /// number: 0.18 ms for 128 x 384, where the two by themselves take 0.05. It leaves a Sum alone.
  void write_sums_before_norms() {
    const std::vector<Node*> nodes = graph_.nodes();
    for (Node* norm : nodes) {
      if (!is_a<LayerNorm>(*norm)) continue;
      Node* add = norm->input(0)->producer;
      if (!add || !is_a<Add>(*add) || add->input(0)->is_constant() || add->input(1)->is_constant()) continue;
      const auto paired = [&](const PlacedTensor& placed) { return placed.value == add->output()->id; };
      if (std::any_of(placement_.tensors.begin(), placement_.tensors.end(), paired)) continue;
      Node* sum = graph_.add_node(op_named("sum"), AttrMap{}, {add->input(0), add->input(1)}, 1, add->sources, add);
      rename(placement_, add->id, {sum->id});
      take_over(graph_, add->output(), sum->output());
      graph_.erase(add);
    }
  }

  Graph graph_;
  FreeNames names_;
  Placement& placement_;
};

}  // namespace

Graph prepare_products(const Graph& prepared, Placement& placement, bool for_operators) {
  return Preparer(prepared, placement).run(for_operators);
}

}  // namespace opfuse::quantization
