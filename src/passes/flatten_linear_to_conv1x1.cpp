// FlattenLinearToConv1x1.
//     x[N,C,1,1] -- Flatten -- (Dropout|activation)* -- Linear[C -> K]  =
//     x[N,C,1,1] -- (Dropout|activation)* -- Conv 1x1, weight [K,C,1,1] -- Flatten
// Only equal where the map is 1x1 (then in_features = C): a 7x7 head such as VGG's is refused with both numbers. Lets
// the head fuse and quantise like every other convolution.
#include <fmt/format.h>

#include <algorithm>

#include "ir/outline.hpp"
#include "match/activation.hpp"
#include "ops/registry.hpp"
#include "passes/linear_product.hpp"
#include "passes/passes.hpp"
#include "passes/recompose.hpp"

namespace opfuse {

namespace {

constexpr const char* kPass = "flatten-linear-to-conv1x1";
constexpr const char* kRule = "FlattenLinearToConv1x1";

struct Head {
  Node* flatten = nullptr;
  std::vector<Node*> between;  // dropout, identity, activations
  Node* product = nullptr;     // gemm or matmul
  Node* add = nullptr;         // bias of a matmul
  Value* weight = nullptr;
  bool transposed = false;  // weight is [out, in]
  Value* bias = nullptr;
  Node* last() const { return add ? add : product; }
};

int64_t axis_of(const Node& flatten) {
  const AttrMap attrs = flatten.attr_map();
  const AttrValue* axis = find(attrs, "axis");
  return axis && std::holds_alternative<int64_t>(*axis) ? std::get<int64_t>(*axis) : 1;
}

// Flatten(axis 1) of a 4-D value, or a Reshape to two dimensions with a constant shape.
bool is_flatten(const Node& node) {
  if (node.is("flatten")) return axis_of(node) == 1;
  return node.is("reshape") && node.input(0)->type.shape.rank() == 4 && node.input(1) && node.input(1)->is_constant() &&
         node.output()->type.shape.rank() == 2;
}

bool may_stand_between(const Node& node) {
  return node.is("dropout") || node.is("identity") || !activation_name(node).empty();
}

/// The only reader, as its first operand.
Node* next_of(const Value* v) {
  const Use* use = v->only_use();
  return use && use->index == 0 ? use->node : nullptr;
}

void read_bias_of_matmul(Head& head) {
  const Value* y = head.product->output();
  const Use* use = y->only_use();
  if (!use || !use->node->is("add")) return;
  Node* add = use->node;
  Value* other = add->inputs[1 - use->index];
  if (!other->is_constant() || add->output()->type != y->type) return;
  head.add = add;
  head.bias = other;
}

// The head that starts at this flatten; nullopt when what follows is not a Linear (nothing to tell).
std::optional<Head> find_head(Node* flatten) {
  Head head{.flatten = flatten};
  Node* next = next_of(flatten->output());
  while (next && may_stand_between(*next)) {
    head.between.push_back(next);
    next = next_of(next->output());
  }
  if (!next || (!next->is("gemm") && !next->is("matmul"))) return std::nullopt;
  head.product = next;
  return head;
}

std::optional<Decline> check_bias(const Head& head, int64_t out) {
  if (!head.bias) return std::nullopt;
  if (!head.bias->is_constant()) return Decline{"computed_bias", "the bias is computed", {value_name(*head.bias)}};
  const Tensor& b = *head.bias->constant;
  if (b.elements() == 1 || (b.elements() == out && b.rank() >= 1 && b.sizes().back() == out)) return std::nullopt;
  return Decline{"bias_shape", fmt::format("the bias is {}, expected [{}]", b.type().text(), out), {}};
}

std::optional<Decline> check(Head& head) {
  const Shape& shape = head.flatten->input(0)->type.shape;
  if (shape.rank() != 4)
    return Decline{"rank", fmt::format("the flattened value is {}, not four-dimensional", shape.text()), {}};
  auto read = linear_product(*head.product);
  if (auto* decline = std::get_if<Decline>(&read)) return std::move(*decline);
  const auto& [x, weight, bias, transposed, in, out] = std::get<LinearProduct>(read);
  head.weight = weight;
  head.transposed = transposed;
  head.bias = bias;
  if (head.product->is("matmul")) read_bias_of_matmul(head);
  const bool one = shape[2] == Dim(1) && shape[3] == Dim(1);
  if (!shape[1].is_constant())
    return Decline{"unknown_dimension", "the channels of " + shape.text() + " are not known", {}};
  if (!one && in != shape[1].value())
    return Decline{"spatial_extent",
                   fmt::format("the map at the Flatten is {}x{}, not 1x1: in_features {} is not its {} channels",
                               shape[2].text(), shape[3].text(), in, shape[1].value()),
                   {fmt::format("H*W {}", (shape[2] * shape[3]).text()), fmt::format("in_features {}", in)}};
  return check_bias(head, out);
}

Tensor conv_weight(const Head& head) {
  const Tensor& w = *head.weight->constant;
  if (head.transposed) return w.reshaped({w.dim(0), w.dim(1), 1, 1});
  Tensor t(w.dtype(), {w.dim(1), w.dim(0), 1, 1});
  for (int64_t i = 0; i < w.dim(0); ++i)
    for (int64_t o = 0; o < w.dim(1); ++o) t.set_real(o * w.dim(0) + i, w.real(i * w.dim(1) + o));
  return t;
}

Value* conv_bias(Graph& graph, const Head& head, int64_t out) {
  const Tensor& b = *head.bias->constant;
  if (b.elements() == out) return graph.add_constant(b.reshaped({out}));
  Tensor splat(b.dtype(), {out});
  for (int64_t i = 0; i < out; ++i) splat.set_real(i, b.real(0));
  return graph.add_constant(splat);
}

// Copies a node that keeps its operator but now works on four dimensions.
Node* move_before(Graph& graph, const Node& node, Value* x, Node* before) {
  std::vector<Value*> inputs = node.inputs;
  inputs[0] = x;
  if (!node.body) return graph.add_node(node.op, node.attrs_, std::move(inputs), 1, node.sources, before);
  return inline_body(graph, *node.body, inputs, before).front()->producer;
}

void convert(Graph& graph, const Head& head) {
  Node* const last = head.last();
  Value* x = head.flatten->input(0);
  bool bodies = false;
  for (const Node* node : head.between) {
    x = move_before(graph, *node, x, last)->output();
    bodies |= node->body != nullptr;
  }
  if (bodies) graph.infer_types();  // an inlined body still has its two-dimensional types
  const Tensor weight = conv_weight(head);
  std::vector<Value*> operands{x, graph.add_constant(weight)};
  if (head.bias) operands.push_back(conv_bias(graph, head, weight.dim(0)));
  std::vector<Node*> linear{head.product};
  if (head.add) linear.push_back(head.add);
  Node* conv = graph.add_node(op_named("conv"), AttrMap{}, std::move(operands), 1, united_sources(linear), last);
  Node* flat = graph.add_node(op_named("flatten"), AttrMap{{"axis", int64_t{1}}}, {conv->output()}, 1,
                              head.flatten->sources, last);
  take_over(graph, last->output(), flat->output());
  if (head.add) graph.erase(head.add);
  graph.erase(head.product);
  for (auto it = head.between.rbegin(); it != head.between.rend(); ++it) graph.erase(*it);
  graph.erase(head.flatten);
}

}  // namespace

static bool run(Graph& graph, PassContext& context) {
  RewriteReport* const report = context.report;
  bool changed = false;
  const std::vector<Node*> order = graph.nodes();
  std::vector<Node*> flattens;
  for (Node* node : order)
    if (is_flatten(*node)) flattens.push_back(node);
  for (Node* flatten : flattens) {
    std::optional<Head> head = find_head(flatten);
    if (!head) continue;
    const std::string where = head->product->name();
    if (auto decline = check(*head)) {
      if (report) report->declined(kPass, kRule, where, std::move(*decline));
      continue;
    }
    convert(graph, *head);
    if (report) report->applied(kPass, kRule, where, "conv 1x1, then flatten");
    changed = true;
  }
  return changed;
}

Pass flatten_linear_to_conv1x1() {
  return {"flatten-linear-to-conv1x1", "A Linear after the Flatten of a 1x1 map becomes a 1x1 convolution.", run, {}};
}

}  // namespace opfuse
