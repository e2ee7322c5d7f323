// Operands of attention that are rounded to one step, however often, are stored as codes by who makes them:
//
//     x -- [Q, DQ, reshape, Q, DQ, transpose, Q, DQ] -- attention
//
// becomes   x -- Q -- reshape -- transpose -- [DQ, attention]
//
// A code that is dequantised, moved and quantised with the same step is the same code, so one pair does for all of
// them. The movements then are attention's own (absorb_movements.cpp), and Q is part of the group that makes x, where
// the two are a kernel: a product of codes, which rounds without a division.
#include <algorithm>
#include <cmath>
#include <variant>

#include "match/movement.hpp"
#include "match/qdq.hpp"
#include "ops/is_a.hpp"
#include "ops/quantize.hpp"
#include "ops/slice.hpp"
#include "ops/transpose.hpp"
#include "shape/join.hpp"
#include "shape/takes_movements.hpp"
#include "tensor/dtype.hpp"

namespace opfuse {
namespace {

constexpr const char* kPass = "codes-to-attention";
constexpr double kLeastScale = 0x1p-100, kMostScale = 0x1p100;  ///< c * s / s rounds to c: nothing over- or underflows

/// x, moved and rounded to one step.
struct Rounded {
  Value* x = nullptr;
  const Node *quantize = nullptr, *dequantize = nullptr;
  std::vector<const Node*> movements;  ///< the first one reads x
};

bool is_one_step(const Node& quantize) {
  const Tensor* scale = quantize.input(1)->is_constant() ? &*quantize.input(1)->constant : nullptr;
  const Value* zero = quantize.input(2);
  const DType codes = quantize.output()->type.dtype;
  if (!scale || scale->elements() != 1 || scale->dtype() != DType::f32) return false;
  if (zero && !(zero->is_constant() && zero->constant->elements() == 1)) return false;
  const double s = scale->real(0);
  return (codes == DType::u8 || codes == DType::i8) && s >= kLeastScale && s <= kMostScale;
}

bool same_step(const Node& a, const Node& b) {
  return a.output()->type.dtype == b.output()->type.dtype && same_parameter(a.input(1), b.input(1)) &&
         same_parameter(a.input(2), b.input(2));
}

/// No new elements, in contrast to a padding.
bool only_moves(const Node& node) {
  return moves_elements(node) && node.outputs.size() == 1 &&
         (is_view(node) || is_a<Transpose>(node) || is_a<Slice>(node));
}

/// What the group makes of its only operand, where it has movements and pairs of one step alone.
std::optional<Rounded> rounded_by(const Node& group) {
  if (group.op != fused_op() || group.inputs.size() != 1 || group.outputs.size() != 1) return std::nullopt;
  Rounded found{.x = group.inputs[0]};
  const Value* v = group.body->outputs()[0];
  size_t nodes = 0;
  for (; v->producer; ++nodes) {
    if (const auto pair = qdq_pair(v)) {
      if (!is_one_step(*pair->quantize)) return std::nullopt;
      if (found.quantize && !same_step(*pair->quantize, *found.quantize)) return std::nullopt;
      found.quantize = pair->quantize, found.dequantize = pair->dequantize;
      v = pair->quantize->input(0);
      ++nodes;
    } else if (only_moves(*v->producer)) {
      found.movements.push_back(v->producer);
      v = v->producer->input(0);
    } else {
      return std::nullopt;
    }
  }
  if (!found.quantize || v != group.body->inputs()[0] || nodes != group.body->nodes().size()) return std::nullopt;
  std::reverse(found.movements.begin(), found.movements.end());
  return found;
}

/// What `reader` alone reads, by one group or by several and movements between them, which nothing else reads.
std::optional<Rounded> rounded(const Node& reader, Value* operand) {
  const auto mine = [&](const Use& use) { return use.node == &reader; };
  if (operand->as_output || !std::all_of(operand->uses.begin(), operand->uses.end(), mine)) return std::nullopt;
  Rounded all{.x = operand};
  while (all.x->producer && (all.x == operand || all.x->only_use())) {
    const Node& maker = *all.x->producer;
    if (const auto part = rounded_by(maker); part && (!all.quantize || same_step(*part->quantize, *all.quantize))) {
      all.movements.insert(all.movements.begin(), part->movements.begin(), part->movements.end());
      all.x = part->x, all.quantize = part->quantize, all.dequantize = part->dequantize;
    } else if (only_moves(maker)) {
      all.movements.insert(all.movements.begin(), &maker);
      all.x = maker.input(0);
    } else {
      break;
    }
  }
  return all.quantize ? std::optional(std::move(all)) : std::nullopt;
}

/// `node` of a group's body once more, outside, with another first operand; the others are constants.
Value* copied(Graph& graph, const Node& node, Value* first, Node* before) {
  std::vector<Value*> inputs = {first};
  for (size_t i = 1; i < node.inputs.size(); ++i)
    inputs.push_back(node.inputs[i] ? graph.add_constant(*node.inputs[i]->constant) : nullptr);
  return graph.add_node(node.op, node.attrs_, std::move(inputs), 1, node.sources, before)->output();
}

class CodesToAttention {
 public:
  CodesToAttention(Graph& graph, const ShapeContext& context) : graph_(graph), context_(context) {}

  /// Operands of `attention` that it reads as codes now; it is another node then.
  int64_t run(Node*& attention) {
    int64_t count = 0;
    for (bool more = true; more;) {
      more = false;
      for (Value* operand : std::vector<Value*>(attention->inputs))
        if (Node* grown = operand ? read_as_codes(attention, operand) : nullptr) {
          attention = grown;
          more = true;
          ++count;
          break;
        }
    }
    return count;
  }

  /// Codes are stored by who makes what they stand for.
  void join_makers() {
    for (Node* quantize : made_) {
      Node* maker = quantize->input(0)->producer;
      if (!maker || maker->op != fused_op() || !quantize->input(0)->only_use() || graph_.is_output(quantize->input(0)))
        continue;
      outline_unless(graph_, {maker, quantize}, {fused_op(), maker->label, maker->pattern}, legality());
    }
  }

 private:
  Graph& graph_;
  const ShapeContext& context_;
  std::vector<Node*> made_;  ///< quantize_linear

  Legality legality() const {
    return [this](const Node& node) { return context_.refuses(kPass, node); };
  }

  /// One Q for all that round `x` to one step, right behind it: in front of everything that reads it, now or later.
  Value* codes_of(Value* x, const Node& quantize, bool& fresh) {
    for (Node* made : made_)
      if (made->input(0) == x && same_step(*made, quantize)) return made->output();
    fresh = true;
    return copied(graph_, quantize, x, graph_.nodes()[x->producer ? graph_.position(x->producer) + 1 : 0]);
  }

  /// The group with the dequantised operand inside, or null and nothing changed.
  Node* read_as_codes(Node* attention, Value* operand) {
    const auto found = rounded(*attention, operand);
    if (!found) return nullptr;
    Node* maker = operand->producer;
    bool fresh = false;
    Value* codes = codes_of(found->x, *found->quantize, fresh);
    Node* quantize = codes->producer;
    std::vector<Node*> added;
    Value* v = codes;
    for (const Node* movement : found->movements) added.push_back((v = copied(graph_, *movement, v, maker))->producer);
    Node* dequantize = copied(graph_, *found->dequantize, v, maker)->producer;
    replace_operand(attention, operand, dequantize->output());
    const Outline how{fused_op(), attention->label, attention->pattern};
    const auto joined = outline_unless(graph_, {dequantize, attention}, how, legality());
    if (const auto* grown = std::get_if<Node*>(&joined)) {
      if (fresh) made_.push_back(quantize);
      erase_unread(maker);
      return *grown;
    }
    replace_operand(attention, dequantize->output(), operand);
    graph_.erase(dequantize);
    for (; !added.empty(); added.pop_back()) graph_.erase(added.back());
    if (fresh) graph_.erase(quantize);
    return nullptr;
  }

  /// The node, and movements and roundings in front of it.
  void erase_unread(Node* node) {
    while (node && node->output()->uses.empty() && !node->output()->as_output) {
      Node* before = node->input(0)->producer;
      graph_.erase(node);
      node = before && (only_moves(*before) || rounded_by(*before)) ? before : nullptr;
    }
  }

  void replace_operand(Node* node, const Value* before, Value* after) {
    for (size_t i = 0; i < node->inputs.size(); ++i)
      if (node->inputs[i] == before) graph_.set_input(node, i, after);
  }
};

/// What sum-codes said of the attention, whose operands stood for floats then.
void note_products(const Node& attention, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts) {
  if (!context.multiplies_codes || !context.multiplies_codes(attention)) return;
  for (ShapeVerdict& v : verdicts)
    if (v.pass == "sum-codes" && v.nodes.front() == name_of_group(attention)) v.refused.reset();
}

/// Works on groups that are legal; they stay legal.
bool run(Graph& fused, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts) {
  if (context.switched_off(kPass)) return false;
  CodesToAttention rewrite(fused, context);
  bool changed = false;
  for (Node* node : std::vector<Node*>(fused.nodes())) {
    if (!is_attention(*node) || context.refuses(kPass, *node)) continue;
    ShapeVerdict verdict{.pass = kPass, .nodes = {name_of_group(*node)}};
    for (const Source& source : node->sources) verdict.sources.push_back(source.name);
    const int64_t count = rewrite.run(node);
    note_products(*node, context, verdicts);
    if (count == 0) continue;
    verdict.numbers = {{"operands", count}};
    verdicts.push_back(std::move(verdict));
    changed = true;
  }
  rewrite.join_makers();
  return changed;
}

}  // namespace

ShapingPass codes_to_attention() {
  return {kPass, "Operands of attention that are rounded to one step are stored and read as codes.", run};
}

}  // namespace opfuse
