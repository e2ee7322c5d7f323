// One group at a time; a trial on a copy decides.
#include "shape/codes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/outline.hpp"

namespace opfuse {
namespace {

bool is_product(const Node& node) { return node.is("conv") || node.is("gemm") || node.is("matmul"); }

const Node* product_of(const Node& group) {
  if (is_product(group)) return &group;
  if (!group.body) return nullptr;
  for (const Node* node : group.body->nodes())
    if (const Node* product = product_of(*node)) return product;
  return nullptr;
}

bool dequantises(const Value* value) {
  return value && value->producer && value->producer->is("dequantize_linear") &&
         value->producer->input(1)->is_constant();
}

/// Both factors of a product that stands in `group` or in its body are dequantised in front of the group.
bool reads_codes(const Node& group) {
  const Node* product = product_of(group);
  if (!product) return false;
  const auto in_front = [&](const Value* value) {
    if (product == &group) return dequantises(value);
    const auto& inputs = group.body->inputs();
    const auto at = std::find(inputs.begin(), inputs.end(), value);
    return at != inputs.end() && dequantises(group.inputs[static_cast<size_t>(at - inputs.begin())]);
  };
  return in_front(product->input(0)) && in_front(product->input(1));
}

/// The maximum of a group that pools and quantises; null: it does something else.
const Node* pool_of(const Node& group) {
  if (group.op != fused_op()) return nullptr;
  const auto& nodes = group.body->nodes();
  const bool pools = nodes.size() > 1 && nodes.size() < 4 && nodes[0]->is("max_pool") &&
                     nodes[0]->outputs.size() == 1 && nodes[1]->is("quantize_linear") &&
                     (nodes.size() == 2 || nodes[2]->is("dequantize_linear"));
  return pools ? nodes[0] : nullptr;
}

bool same_constant(const Value* a, const Value* b) {
  if (!a || !b) return a == b;
  return a->is_constant() && b->is_constant() && a->constant->same_bits(*b->constant);
}

/// Some result is what a DequantizeLinear of the group makes, for a product or a pool.
bool hides_codes(const Node& group) {
  if (group.op != fused_op()) return false;
  for (size_t i = 0; i < group.outputs.size(); ++i) {
    const auto& uses = group.outputs[i]->uses;
    if (dequantises(group.body->outputs()[i]) && std::any_of(uses.begin(), uses.end(), [](const Use& use) {
          return product_of(*use.node) || pool_of(*use.node);
        }))
      return true;
  }
  return false;
}

/// The group stores codes; the DequantizeLinear nodes at its end, which are added to `behind`, stand behind it.
void give_codes(Graph& graph, Node* group, std::vector<Node*>& behind) {
  const Outline how{fused_op(), group->label, group->pattern};
  const std::vector<Node*> before = graph.nodes();
  const std::vector<Value*> results = inline_body(graph, *group->body, group->inputs, group);
  std::vector<Node*> rest;
  for (Node* node : graph.nodes()) {
    const bool last =
        dequantises(node->output()) && std::find(results.begin(), results.end(), node->output()) != results.end();
    if (std::find(before.begin(), before.end(), node) == before.end()) (last ? behind : rest).push_back(node);
  }
  for (size_t i = 0; i < results.size(); ++i) take_over(graph, group->outputs[i], results[i]);
  graph.erase(group);
  if (rest.size() > 1) outline(graph, rest, how);
}

/// max(dequantised) quantised to the same step is the largest code: the pool takes and gives codes.
void pool_codes(Graph& graph, Node* group) {
  const Node* pool = pool_of(*group);
  if (!pool || group->body->nodes().size() != 2 || group->outputs.size() != 1) return;
  const auto& inputs = group->body->inputs();
  const auto at = std::find(inputs.begin(), inputs.end(), pool->input(0));
  if (at == inputs.end()) return;
  const Value* data = group->inputs[static_cast<size_t>(at - inputs.begin())];
  const Node* quantize = group->body->nodes()[1];
  if (!dequantises(data) || quantize->input(0) != pool->output()) return;
  const Node* dequantize = data->producer;
  if (!same_constant(quantize->input(1), dequantize->input(1)) ||
      !same_constant(quantize->input(2), dequantize->input(2)))
    return;
  Value* codes = dequantize->input(0);
  if (codes->type.dtype != DType::u8 || codes->type.dtype != group->output()->type.dtype) return;
  Node* added = graph.add_node(pool->op, pool->attrs_, {codes}, 1, group->sources, group);
  added->output()->type = group->output()->type;
  take_over(graph, group->output(), added->output());
  graph.erase(group);
}

std::string label_of(const Node& group) {
  return group.label.empty() ? fmt::format("{}__{}", group.op->name, group.name()) : group.label;
}

/// Copies of the nodes that dequantise a group's operands, in front of it.
class Copies {
 public:
  Copies(Graph& graph, Node* group) : graph_(graph), group_(group), before_(group->inputs) {
    std::map<const Value*, Node*> made;
    for (size_t i = 0; i < before_.size(); ++i) {
      if (!dequantises(before_[i])) continue;
      const Node& from = *before_[i]->producer;
      Node*& copy = made[before_[i]];
      if (!copy) nodes_.push_back(copy = graph.add_node(from.op, from.attrs_, from.inputs, 1, from.sources, group));
      copy->output()->type = before_[i]->type;
      graph.set_input(group, i, copy->output());
    }
    nodes_.push_back(group);
  }
  const std::vector<Node*>& with_group() const { return nodes_; }

  void take_back() {
    for (size_t i = 0; i < before_.size(); ++i)
      if (group_->inputs[i] != before_[i]) graph_.set_input(group_, i, before_[i]);
    nodes_.pop_back();
    for (Node* copy : nodes_) graph_.erase(copy);
  }

 private:
  Graph& graph_;
  Node* group_;
  std::vector<Value*> before_;
  std::vector<Node*> nodes_;
};

/// Images that come from outside are dense: four channels of a pixel do not lie side by side.
std::optional<Decline> dense_image(const Node& group) {
  for (const Value* value : group.inputs) {
    if (!dequantises(value)) continue;
    const Value* codes = value->producer->input(0);
    if (!codes->producer && !codes->is_constant() && codes->type.shape.rank() > 2)
      return Decline{"dense_operand",
                     fmt::format("'{}' is an input of the model, whose channels lie apart", codes->name),
                     {codes->name}};
  }
  return std::nullopt;
}

/// Codes that only a DequantizeLinear reads after all: it goes back to the end of their group.
void take_codes_back(Graph& graph, const std::vector<Node*>& behind) {
  for (Node* node : behind) {
    Value* codes = node->input(0);
    const bool alone = codes->uses.size() == 1 && graph.read_count(codes) == 1 && codes->producer;
    if (!alone || graph.read_count(node->output()) == 0) continue;
    Node* group = codes->producer;
    Node* joined = outline(graph, {group, node}, {fused_op(), label_of(*group), group->pattern});
    expand_groups(*joined->body);
  }
}

}  // namespace

std::vector<PrecisionVerdict> sum_codes(Graph& fused, const CodesAdvice& advice) {
  std::vector<PrecisionVerdict> verdicts;
  std::vector<Node*> behind;
  for (Node* node : std::vector<Node*>(fused.nodes()))
    if (hides_codes(*node)) give_codes(fused, node, behind);
  for (Node* node : std::vector<Node*>(fused.nodes())) pool_codes(fused, node);
  const std::vector<Node*> nodes = fused.nodes();
  for (Node* node : nodes) {
    if (!reads_codes(*node)) continue;
    PrecisionVerdict& verdict = verdicts.emplace_back();
    verdict.name = label_of(*node);
    if ((verdict.floats = dense_image(*node))) continue;
    const Outline how{fused_op(), verdict.name, node->pattern};
    Copies copies(fused, node);
    const OutlinedCopy trial = outline_copy(fused, copies.with_group(), how);
    if ((verdict.floats = advice(*trial.node))) {
      copies.take_back();
      continue;
    }
    Node* joined = outline(fused, copies.with_group(), how);
    expand_groups(*joined->body);
  }
  take_codes_back(fused, behind);
  if (!verdicts.empty()) fused.remove_dead_nodes();
  return verdicts;
}

std::vector<std::string> precision_lines(const std::vector<PrecisionVerdict>& verdicts) {
  if (verdicts.empty()) return {};
  std::map<std::string, int> codes;
  int integers = 0;
  for (const PrecisionVerdict& v : verdicts) ++(v.floats ? codes[v.floats->code] : integers);
  std::string line = fmt::format("int8 in {} of {} quantised products", integers, verdicts.size());
  for (const auto& [code, count] : codes) line += fmt::format(", f32 in {} ({})", count, code);
  return {line};
}

}  // namespace opfuse
