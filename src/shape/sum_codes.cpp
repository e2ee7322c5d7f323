// Products of quantised operands become sums of their codes: the DequantizeLinear nodes in front of a convolution or
// matrix product join its group, which then reads bytes.
//
//     x codes -- DequantizeLinear --.
//     w codes -- DequantizeLinear -- [Conv, ..., QuantizeLinear] -- y codes
//
// becomes   x codes -- [DequantizeLinear x 2, Conv, ..., QuantizeLinear] -- y codes
//
// Products of one group that have only an operand in common (an attention's projections) get groups of their own first.
// Results of groups that such a product reads are stored as codes, and a maximum between two equal steps pools codes.
// Tables of codes are gathered as they lie: rows that are read are dequantised, not the table. A mean reads codes too.
// What is quantised behind a view (a Flatten in front of the classifier) is quantised in front of it, by its maker.
// A DequantizeLinear that others read too stays for them. Where the target has no kernel for the sum, the group stays
// as it is: operands are dequantised and the product is computed in f32. One group at a time; a trial decides.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "fusion/precision.hpp"
#include "ir/body.hpp"
#include "ir/outline.hpp"
#include "match/movement.hpp"
#include "match/qdq.hpp"
#include "ops/conv.hpp"
#include "ops/gather.hpp"
#include "ops/global_pool.hpp"
#include "ops/is_a.hpp"
#include "ops/pool.hpp"
#include "ops/quantize.hpp"
#include "ops/reduce.hpp"
#include "shape/inner_operand.hpp"
#include "shape/join.hpp"
#include "shape/separate_products.hpp"

namespace opfuse {
namespace {

const Node* product_of(const Node& group) {
  if (is_product(group)) return &group;
  if (!group.body) return nullptr;
  for (const Node* node : group.body->nodes())
    if (const Node* product = product_of(*node)) return product;
  return nullptr;
}

bool dequantises(const Value* value) {
  return value && value->producer && is_a<DequantizeLinear>(*value->producer) &&
         value->producer->input(1)->is_constant();
}

bool both_dequantised(const Value* left, const Value* right) { return dequantises(left) && dequantises(right); }

/// Both factors of the group's product are dequantised in front of the group.
bool reads_codes(const Node& group) {
  const Node* product = product_of(group);
  return product && both_dequantised(inner_operand(group, *product, 0), inner_operand(group, *product, 1));
}

/// The maximum of a group that pools and quantises; null: it does something else.
const Node* pool_of(const Node& group) {
  if (group.op != fused_op()) return nullptr;
  const auto& nodes = group.body->nodes();
  const bool pools = nodes.size() > 1 && nodes.size() < 4 && is_a<MaxPool>(*nodes[0]) &&
                     nodes[0]->outputs.size() == 1 && is_a<QuantizeLinear>(*nodes[1]) &&
                     (nodes.size() == 2 || is_a<DequantizeLinear>(*nodes[2]));
  return pools ? nodes[0] : nullptr;
}

/// The mean of an image that a group begins with; null: it begins with something else.
const Node* mean_of(const Node& group) {
  const Node& first = group.op == fused_op() ? *group.body->nodes().front() : group;
  return is_a<GlobalAveragePool>(first) || is_a<ReduceMean>(first) || is_a<AveragePool>(first) ? &first : nullptr;
}

/// A result of the group is made by a DequantizeLinear in it, at its end; scales by channel are constants in front of
/// the group.
bool dequantises_inside(const Node& group, const Value* result) {
  if (!result->uses.empty() || !result->producer || !is_a<DequantizeLinear>(*result->producer)) return false;
  const Value* scale = result->producer->input(1);
  const Value* outer = outside_of(group, scale);
  return (outer ? outer : scale)->is_constant();
}

/// Some result is what a DequantizeLinear of the group makes, for a product, a pool or a mean.
bool hides_codes(const Node& group) {
  if (group.op != fused_op()) return false;
  for (size_t i = 0; i < group.outputs.size(); ++i) {
    const auto& uses = group.outputs[i]->uses;
    if (dequantises_inside(group, group.body->outputs()[i]) &&
        std::any_of(uses.begin(), uses.end(),
                    [](const Use& use) { return product_of(*use.node) || pool_of(*use.node) || mean_of(*use.node); }))
      return true;
  }
  return false;
}

/// The group stores codes; the DequantizeLinear nodes at its end, which are added to `behind`, stand behind it.
/// `names`: of all values of the graph.
void give_codes(Graph& graph, Node* group, std::vector<Node*>& behind, std::unordered_set<std::string>& names) {
  const Outline how{fused_op(), group->label, group->pattern};
  const size_t at = graph.position(group);
  const std::vector<Value*> results = inline_body(graph, *group->body, group->inputs, group, names);
  std::vector<Node*> inside, rest;
  for (size_t i = at; graph.nodes()[i] != group; ++i) inside.push_back(graph.nodes()[i]);
  const std::unordered_set<const Node*> own(inside.begin(), inside.end());
  for (Node* node : inside) {
    const std::vector<Use>& uses = node->output()->uses;  // a pair behind it keeps the node in the group
    const bool last = dequantises(node->output()) &&
                      std::find(results.begin(), results.end(), node->output()) != results.end() &&
                      std::none_of(uses.begin(), uses.end(), [&](const Use& use) { return own.contains(use.node); });
    (last ? behind : rest).push_back(node);
  }
  for (size_t i = 0; i < results.size(); ++i) take_over(graph, group->outputs[i], results[i]);
  graph.erase(group);
  if (rest.size() < 2) return;
  for (const Node* node : rest)
    for (const Value* v : node->outputs) names.erase(v->name);
  for (const Value* v : outline(graph, rest, how)->outputs) names.insert(v->name);
}

/// max(dequantised) quantised to the same step is the largest code: the pool takes and gives codes.
bool pool_codes(Graph& graph, Node* group) {
  const Node* pool = pool_of(*group);
  if (!pool || group->body->nodes().size() != 2 || group->outputs.size() != 1) return false;
  const Value* data = outside_of(*group, pool->input(0));
  const Node* quantize = group->body->nodes()[1];
  if (!dequantises(data) || quantize->input(0) != pool->output()) return false;
  const Node* dequantize = data->producer;
  if (!same_parameter(quantize->input(1), dequantize->input(1)) ||
      !same_parameter(quantize->input(2), dequantize->input(2)))
    return false;
  Value* codes = dequantize->input(0);
  if (codes->type.dtype != DType::u8 || codes->type.dtype != group->output()->type.dtype) return false;
  Node* added = graph.add_node(pool->op, pool->attrs_, {codes}, 1, group->sources, group);
  added->output()->type = group->output()->type;
  take_over(graph, group->output(), added->output());
  graph.erase(group);
  return true;
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

/// Images that come from outside are dense: four channels of a pixel do not lie side by side. Rows of a matrix product
/// do.
std::optional<Decline> dense_image(const Node& group) {
  const Node* product = product_of(group);
  if (!product || !is_a<Conv>(*product)) return std::nullopt;
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
    const Value* codes = node->input(0);
    if (!codes->only_use() || !codes->producer || graph.read_count(node->output()) == 0) continue;
    Node* group = codes->producer;
    Node* joined = outline(graph, {group, node}, {fused_op(), label_of(*group), group->pattern});
    expand_groups(*joined->body);
  }
}

constexpr const char* kPass = "sum-codes";

/// The group with its DequantizeLinear nodes, or why it stays without.
std::optional<Decline> take_codes(Graph& fused, Node* group, const ShapeContext& context) {
  if (auto why = dense_image(*group)) return why;
  if (auto why = context.switched_off(kPass)) return why;
  Copies copies(fused, group);
  const Outline how{fused_op(), label_of(*group), group->pattern};
  const auto joined =
      outline_unless(fused, copies.with_group(), how, [&](const Node& trial) { return context.loses(kPass, trial); });
  if (std::holds_alternative<Node*>(joined)) return std::nullopt;
  copies.take_back();
  return std::get<Decline>(joined);
}

/// The kernel of `node` dequantises its operands itself, where it can.
bool dequantise_inside(Graph& graph, Node* node, const ShapeContext& context) {
  Copies copies(graph, node);
  const Outline how{fused_op(), label_of(*node), node->pattern};
  const auto refuses = [&](const Node& trial) { return context.forbids(trial); };
  const auto joined = outline_unless(graph, copies.with_group(), how, refuses);
  if (std::holds_alternative<Node*>(joined)) return true;
  copies.take_back();
  return false;
}

/// A dequantised table of constants is gathered, by the group or in it.
bool gathers_codes(const Node& group, const Node& inside) {
  if (is_a<Gather>(inside)) {
    const Value* table = inner_operand(group, inside, 0);
    return dequantises(table) && table->producer->input(0)->is_constant();
  }
  if (!inside.body || !stands_for_body(inside)) return false;
  const auto& nodes = inside.body->nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node* node) { return gathers_codes(group, *node); });
}

/// gather(dequantised table) is one launch that reads codes.
bool gather_codes(Graph& graph, Node* group, const ShapeContext& context) {
  return gathers_codes(*group, *group) && !product_of(*group) && dequantise_inside(graph, group, context);
}

/// So is the mean of a dequantised image.
bool mean_codes(Graph& graph, Node* group, const ShapeContext& context) {
  const Node* mean = mean_of(*group);
  return mean && dequantises(inner_operand(*group, *mean, 0)) && dequantise_inside(graph, group, context);
}

bool is_one_number(const Value* value) { return !value || (value->is_constant() && value->constant->elements() == 1); }

/// quantise(view(x)) = view(quantise(x)) where all elements have one scale, and the kernel that makes x quantises it.
bool quantise_in_front_of_views(Graph& graph, Node* quantize, const ShapeContext& context) {
  if (!is_a<QuantizeLinear>(*quantize) || quantize->as<QuantizeLinear>().block_size != 0) return false;
  if (!is_one_number(quantize->input(1)) || !is_one_number(quantize->input(2))) return false;
  std::vector<Node*> views;
  const Value* data = quantize->input(0);
  for (; data->producer && is_view(*data->producer) && data->only_use(); data = data->producer->input(0))
    views.insert(views.begin(), data->producer);
  Node* maker = data->producer;
  if (views.empty() || !maker || !data->only_use() || (maker->body && maker->op != fused_op())) return false;
  std::vector<Value*> operands = quantize->inputs;
  operands[0] = views[0]->input(0);
  Node* moved = graph.add_node(quantize->op, quantize->attrs_, operands, 1, quantize->sources, views[0]);
  Value* codes = moved->output();
  for (const Node* view : views) {
    std::vector<Value*> inputs = view->inputs;
    inputs[0] = codes;
    codes = graph.add_node(view->op, view->attrs_, inputs, 1, view->sources, quantize)->output();
  }
  take_over(graph, quantize->output(), codes);
  graph.erase(quantize);
  for (auto view = views.rbegin(); view != views.rend(); ++view) graph.erase(*view);
  const Outline how{fused_op(), label_of(*maker), maker->pattern};
  outline_unless(graph, {maker, moved}, how, [&](const Node& trial) { return context.forbids(trial); });
  return true;
}

/// A verdict for each group with a product whose operands are both dequantised.
bool run(Graph& fused, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts) {
  bool changed = false;
  std::vector<Node*> behind;
  std::unordered_set<std::string> names = names_of_values(fused);
  for (Node* node : std::vector<Node*>(fused.nodes()))
    if (hides_codes(*node)) give_codes(fused, node, behind, names), changed = true;
  if (!context.switched_off(kPass)) {
    for (Node* node : std::vector<Node*>(fused.nodes())) changed |= separate_products(fused, node, both_dequantised);
    for (Node* node : std::vector<Node*>(fused.nodes())) changed |= pool_codes(fused, node);
    for (Node* node : std::vector<Node*>(fused.nodes())) changed |= gather_codes(fused, node, context);
    for (Node* node : std::vector<Node*>(fused.nodes())) changed |= mean_codes(fused, node, context);
    for (Node* node : std::vector<Node*>(fused.nodes())) changed |= quantise_in_front_of_views(fused, node, context);
  }
  for (Node* node : std::vector<Node*>(fused.nodes())) {
    if (!reads_codes(*node)) continue;
    ShapeVerdict verdict{.pass = kPass, .nodes = {label_of(*node)}};
    for (const Source& source : node->sources) verdict.sources.push_back(source.name);
    verdict.refused = take_codes(fused, node, context);
    changed |= !verdict.refused;
    verdicts.push_back(std::move(verdict));
  }
  take_codes_back(fused, behind);
  return changed;
}

}  // namespace

ShapingPass sum_codes() { return {kPass, "Products of quantised operands become sums of their codes.", run}; }

}  // namespace opfuse
