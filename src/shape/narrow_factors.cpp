// Products for which the plan says bf16, f16 or tf32 read both factors in that type and add up in f32; what follows the
// sum (bias, BatchNorm, activation, residual) stays f32 until the result is stored. The producer of a factor stores it
// in bf16, and in f32 too where others read it: residual streams, norms and softmax keep full precision.
//
//     [.., relu] -- x f32 -- [conv, relu] --          becomes
//     [.., relu, cast] -- x' bf16 -- [cast f32, conv, relu] --          w' bf16 is made when compiling
//
// One group at a time; a trial decides whether the target has a kernel. A cast joins the kernel that makes the value
// where that stays the kind of kernel it is, and through reshapes; else it is a launch of its own, which the report
// counts. A max pool joined to the product (a stem) gets a launch of its own, since kernels of matrices have one stage;
// it pools numbers that are rounded already, which is the same as rounding the largest.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "fusion/precision.hpp"
#include "ir/body.hpp"
#include "match/movement.hpp"
#include "ops/conv.hpp"
#include "ops/is_a.hpp"
#include "ops/pool.hpp"
#include "ops/registry.hpp"
#include "shape/inner_operand.hpp"
#include "shape/join.hpp"
#include "tensor/tf32.hpp"

namespace opfuse {
namespace {

constexpr const char* kPass = "narrow-factors";
/// A word of a plan.
struct Precision {
  std::string_view word;
  DType type;
};
constexpr Precision kNarrow[] = {{"bf16", DType::bf16}, {"f16", DType::f16}, {"tf32", kTf32}};

std::string label_of(const Node& group) {
  return group.label.empty() ? group.op->name + "__" + group.name() : group.label;
}

Node* add_cast(Graph& graph, Value* value, DType to, Node* before) {
  return graph.add_node(ops().find("cast"), AttrMap{{"to", to}}, {value}, 1, {}, before);
}

/// The node behind the one that makes `value`; null: at the end.
Node* behind(const Graph& graph, const Value* value) {
  const std::vector<Node*>& nodes = graph.nodes();
  const size_t at = value->producer ? graph.position(value->producer) + 1 : 0;
  return at < nodes.size() ? nodes[at] : nullptr;
}

/// The plan's word for the group, or for a node of the model that its product was made from; null: f32. Of groups that
/// were joined the first one's product is asked for, by the label it had where its node has no name.
const Precision* wanted_by(const Node& group, const Node& product, const ShapeContext& context) {
  const auto asked = [&](const Precision& precision, const std::string& name) {
    const auto at = context.precisions.find(name);
    return at != context.precisions.end() && at->second == precision.word;
  };
  const std::string first = group.label.substr(0, group.label.find('+'));
  for (const Precision& precision : kNarrow)
    if (asked(precision, group.label) || (&product == &group && asked(precision, product.name())) ||
        (product.sources.empty() && asked(precision, first)) ||
        std::any_of(product.sources.begin(), product.sources.end(),
                    [&](const Source& s) { return asked(precision, s.name); }))
      return &precision;
  return nullptr;
}

void products_in(const Node& node, std::vector<const Node*>& found) {
  if (is_product(node)) found.push_back(&node);
  if (!node.body || !stands_for_body(node)) return;  // bodies that run for parts are graphs of their own
  for (const Node* inner : node.body->nodes()) products_in(*inner, found);
}

/// Products whose factors may be narrow: of a chain the convolution in front, since the window behind it multiplies
/// what the kernel has computed.
std::vector<const Node*> products_of(const Node& group) {
  std::vector<const Node*> products;
  products_in(group, products);
  if (products.size() == 2 && is_a<Conv>(*products[1]) && is_depthwise(*products[1])) products.pop_back();
  return products;
}

/// Operands of a group that are the factors of its product.
struct Factors {
  size_t data = 0, weights = 0;
};

/// The operand of the group that is a factor of its product, read by nothing else there.
std::optional<size_t> operand_of(const Node& group, const Node& product, size_t factor) {
  if (&product == &group) return factor;
  const std::vector<Value*>& all = group.inputs;
  const auto at = std::find(all.begin(), all.end(), inner_operand(group, product, factor, true));
  return at == all.end() || !*at ? std::nullopt : std::optional(static_cast<size_t>(at - all.begin()));
}

std::variant<Factors, Decline> factors_of(const Node& group) {
  const std::vector<const Node*> products = products_of(group);
  const auto no = [](const char* code, const char* why) { return Decline{code, why, {}}; };
  if (products.size() != 1) return no("several_products", "its kernel computes several products");
  const Node& product = *products.front();
  if (product.output()->type.dtype != DType::f32) return no("not_f32", "the product is not one of f32");
  const auto data = operand_of(group, product, 0), weights = operand_of(group, product, 1);
  if (!data || !weights) return no("computed_operand", "a factor is computed by the same kernel, or read twice");
  const Value *x = group.inputs[*data], *w = group.inputs[*weights];
  if (!w->is_constant() || x->is_constant()) return no("variable_weights", "the second factor is not a constant");
  if (x->type.dtype != DType::f32 || w->type.dtype != DType::f32) return no("not_f32", "a factor is not f32");
  return Factors{*data, *weights};
}

bool pools(const Node& node) { return is_a<MaxPool>(node) && node.outputs.size() == 1; }

/// Every reader takes the value for the data of a product.
bool only_factor(const Value* value) {
  return value->as_output == 0 && std::all_of(value->uses.begin(), value->uses.end(), [](const Use& use) {
           const auto found = factors_of(*use.node);
           const auto* factors = std::get_if<Factors>(&found);
           return factors && factors->data == use.index;
         });
}

/// A group and the pool that was its last node.
struct Separated {
  Node *product = nullptr, *pool = nullptr;
};

std::optional<Separated> separate_pool(Graph& graph, Node* group) {
  if (group->op != fused_op() || group->outputs.size() != 1 || group->body->nodes().size() < 2) return std::nullopt;
  const Node* last = group->body->nodes().back();
  if (!pools(*last) || last->output() != group->body->outputs()[0]) return std::nullopt;
  const Outline how{fused_op(), label_of(*group), group->pattern};
  const std::vector<Node*> before = graph.nodes();
  const std::vector<Value*> results = inline_body(graph, *group->body, group->inputs, group);
  std::vector<Node*> rest;
  for (Node* node : graph.nodes())
    if (node != results[0]->producer && std::find(before.begin(), before.end(), node) == before.end())
      rest.push_back(node);
  take_over(graph, group->output(), results[0]);
  graph.erase(group);
  return Separated{rest.size() > 1 ? outline(graph, rest, how) : rest[0], results[0]->producer};
}

/// The narrow forms of values, made once each.
class Narrowed {
 public:
  explicit Narrowed(Graph& graph) : graph_(graph) {}

  Value* of(Value* value, DType type) {
    Value*& made = made_[{value, type}];
    if (!made) made = value->is_constant() ? constant(*value, type) : stored(value, type);
    return made;
  }
  /// Nodes that cast, in the order in which they were made.
  const std::vector<Node*>& casts() const { return casts_; }

 private:
  Graph& graph_;
  std::map<std::pair<const Value*, DType>, Value*> made_;  ///< looked up only
  std::vector<Node*> casts_;

  Value* constant(const Value& value, DType type) { return graph_.add_constant(value.constant->cast(type)); }

  Value* stored(Value* value, DType type) {
    const Node* from = value->producer;
    if (from && is_view(*from) && from->input(0)->type.dtype == DType::f32 && !from->input(0)->is_constant()) {
      std::vector<Value*> operands = from->inputs;
      operands[0] = of(from->inputs[0], type);
      Node* view = graph_.add_node(from->op, from->attrs_, operands, 1, from->sources, behind(graph_, value));
      return view->output();
    }
    if (from && pools(*from) && from->input(0)->producer && only_factor(value)) {
      Node* pool =
          graph_.add_node(from->op, from->attrs_, {of(from->input(0), type)}, 1, from->sources, behind(graph_, value));
      return pool->output();
    }
    casts_.push_back(add_cast(graph_, value, type, behind(graph_, value)));
    return casts_.back()->output();
  }
};

/// The group reads factors of `type`, or why it does not.
std::optional<Decline> narrow(Graph& graph, Node* group, DType type, Narrowed& narrowed, const ShapeContext& context) {
  const auto found = factors_of(*group);
  if (const auto* why = std::get_if<Decline>(&found)) return *why;
  if (auto why = context.switched_off(kPass)) return why;
  const auto [data, weights] = std::get<Factors>(found);
  const std::vector<Value*> before = group->inputs;
  Node* x = add_cast(graph, narrowed.of(before[data], type), DType::f32, group);
  Node* w = add_cast(graph, narrowed.of(before[weights], type), DType::f32, group);
  graph.set_input(group, data, x->output());
  graph.set_input(group, weights, w->output());
  const Outline how{fused_op(), label_of(*group), group->pattern};
  const auto joined =
      outline_unless(graph, {x, w, group}, how, [&](const Node& trial) { return context.refuses(kPass, trial); });
  if (std::holds_alternative<Node*>(joined)) return std::nullopt;
  graph.set_input(group, data, before[data]);
  graph.set_input(group, weights, before[weights]);
  graph.erase(x);
  graph.erase(w);
  return std::get<Decline>(joined);
}

/// The cast becomes part of the kernel that makes its operand; whether it did.
bool join_producer(Graph& graph, Node* cast, const ShapeContext& context) {
  Node* producer = cast->input(0)->producer;
  if (!producer || is_view(*producer) || (producer->body && producer->op != fused_op()) || !context.skeleton)
    return false;
  const std::string before = context.skeleton(*producer);
  const Outline how{fused_op(), label_of(*producer), producer->pattern};
  const auto refuses = [&](const Node& trial) -> std::optional<Decline> {
    if (context.legal)
      if (auto illegal = context.legal(trial)) return illegal;
    return context.skeleton(trial) == before ? std::nullopt : std::optional(Decline{"no_gain", "another kernel", {}});
  };
  return std::holds_alternative<Node*>(outline_unless(graph, {producer, cast}, how, refuses));
}

/// What the bias would lose in `type`; it stays f32. It is the product's own, or added to it per channel.
struct LossyBias {
  int64_t channels = 0, lossy = 0;
  double ulps = 0;  ///< of f32, the largest
};

LossyBias lossy_bias(const Node& group, const Node& product, DType type) {
  LossyBias bias;
  const auto count = [&](const Value* value) {
    if (!value || !value->is_constant() || value->type.dtype != DType::f32) return;
    const Tensor narrow = value->constant->cast(type);
    for (int64_t i = 0; i < narrow.elements(); ++i) {
      const double is = value->constant->real(i), off = std::fabs(narrow.real(i) - is);
      ++bias.channels;
      if (off == 0) continue;
      ++bias.lossy;
      bias.ulps = std::max(bias.ulps, off / std::ldexp(1.0, std::ilogb(is) - std::numeric_limits<float>::digits + 1));
    }
  };
  count(inner_operand(group, product, 2));
  if (const Node* next = product.output()->only_reader(); next && next->op->name == "add")
    for (size_t i = 0; i < 2; ++i)
      if (next->input(i) != product.output()) count(inner_operand(group, *next, i));
  return bias;
}

const Precision* wanted_of(const Node& group, const std::vector<const Node*>& products, const ShapeContext& context) {
  for (const Node* product : products)
    if (const Precision* wanted = wanted_by(group, *product, context)) return wanted;
  return nullptr;
}

/// Of a chain the plan says it of the depthwise convolution alone.
ShapeVerdict depthwise_beside(const Node& group, const Precision& wanted) {
  ShapeVerdict verdict{.pass = kPass, .subject = std::string(wanted.word), .nodes = {label_of(group)}};
  for (const Source& source : group.sources) verdict.sources.push_back(source.name);
  verdict.refused = Decline{"no_kernel", "the depthwise one of its convolutions has no factors of that type", {}};
  return verdict;
}

bool run(Graph& graph, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts) {
  if (context.precisions.empty()) return false;
  Narrowed narrowed(graph);
  std::vector<ShapeVerdict> told;
  for (Node* node : std::vector<Node*>(graph.nodes())) {
    const std::vector<const Node*> products = products_of(*node);
    const Precision* wanted = wanted_of(*node, products, context);
    if (!wanted) {
      std::vector<const Node*> all;
      products_in(*node, all);
      if (const Precision* beside = wanted_of(*node, all, context)) told.push_back(depthwise_beside(*node, *beside));
    }
    if (!wanted || (wanted->type == DType::f16 && !context.multiplies_f16)) continue;  // narrow_weights.cpp
    ShapeVerdict& verdict = told.emplace_back(
        ShapeVerdict{.pass = kPass, .subject = std::string(wanted->word), .nodes = {label_of(*node)}});
    for (const Source& source : node->sources) verdict.sources.push_back(source.name);
    const LossyBias bias = lossy_bias(*node, *products.front(), wanted->type);
    const Outline how{fused_op(), label_of(*node), node->pattern};
    const auto separated =
        context.switched_off(kPass) ? std::nullopt : separate_pool(graph, node);  // `node` is gone then
    verdict.refused = narrow(graph, separated ? separated->product : node, wanted->type, narrowed, context);
    if (!verdict.refused && bias.lossy > 0)
      verdict.numbers = {{"bias_channels", bias.channels},
                         {"bias_lossy", bias.lossy},
                         {"bias_ulps", static_cast<int64_t>(std::min(bias.ulps, 1e18))}};
    if (separated && verdict.refused) expand_groups(*outline(graph, {separated->product, separated->pool}, how)->body);
  }
  for (Node* node : std::vector<Node*>(graph.nodes()))  // f32 pools whose narrow form is read instead
    if (pools(*node) && graph.read_count(node->output()) == 0) graph.erase(node);
  int64_t alone = 0;
  for (Node* cast : narrowed.casts())
    if (graph.read_count(cast->output()) > 0 && !join_producer(graph, cast, context)) ++alone;
  if (!told.empty()) told.front().numbers["casts"] = alone;
  const bool changed = std::any_of(told.begin(), told.end(), [](const ShapeVerdict& v) { return !v.refused; });
  verdicts.insert(verdicts.end(), told.begin(), told.end());
  graph.remove_dead_nodes();
  return changed;
}

}  // namespace

ShapingPass narrow_factors() {
  return {kPass,
          "Products for which the plan says bf16, f16 or tf32 read factors of that type, which their producers store.",
          run};
}

}  // namespace opfuse
