// TransposeOfUnitAxes.
//     transpose(x: [1,m,n], perm [1,0,2])  =  reshape(x, [m,1,n])
// Where all axes that change places but one have extent 1 nothing moves in memory: batch-first attention of one
// sequence. A reshape needs no kernel, and a Linear goes on through it to its residual. Images whose channels change
// between second and last keep their transpose, which the kernel that stores them takes.
#include "ir/outline.hpp"
#include "ops/registry.hpp"
#include "ops/transpose.hpp"
#include "passes/linear_product.hpp"
#include "passes/passes.hpp"
#include "passes/recompose.hpp"

namespace opfuse {

namespace {

constexpr const char* kPass = "transpose-of-unit-axes";
constexpr const char* kRule = "TransposeOfUnitAxes";

using Permutation = std::vector<size_t>;

bool moves_channels_of_images(const Permutation& p) {
  return p == Permutation{0, 2, 3, 1} || p == Permutation{0, 3, 1, 2};
}

bool keeps_the_order_of_elements(const Permutation& p, const Shape& x) {
  size_t last = 0;
  for (size_t axis : p) {
    if (x[axis] == Dim(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

/// The dimensions as the target of a reshape; nothing when two are open, or one is empty (0 copies a dimension).
std::optional<Tensor> target_of(const Shape& y) {
  std::vector<int64_t> target;
  int open = 0;
  for (const Dim& d : y.dims) {
    target.push_back(d.is_constant() ? d.value() : -1);
    open += !d.is_constant();
    if (target.back() == 0) return std::nullopt;
  }
  return open > 1 ? std::nullopt : std::optional(Tensor::from_i64(target));
}

/// The Linear that a value is the result of, when nothing else reads it: its product and the addition of its bias.
struct LinearNodes {
  Node *product = nullptr, *bias = nullptr;  ///< bias: null when there is none
};

std::optional<LinearNodes> linear_behind(const Graph& graph, Value* y) {
  const auto alone = [&](const Value* v) { return v->producer && graph.read_count(v) == 1; };
  LinearNodes found;
  if (!alone(y)) return std::nullopt;
  if (y->producer->is("add"))
    for (Value* operand : y->producer->inputs)
      if (!operand->is_constant() && operand->type.shape.rank() > 0 && alone(operand) &&
          operand->producer->is("matmul") &&
          row_bias(*y->producer, operand, operand->type.shape.dims.back().constant().value_or(0)))
        found = {operand->producer, y->producer};
  if (y->producer->is("matmul")) found = {y->producer, nullptr};
  if (!found.product || !std::holds_alternative<LinearProduct>(linear_product(*found.product))) return std::nullopt;
  return found;
}

Value* reshaped(Graph& graph, Value* x, const Tensor& target, const Node& transpose, Node* before) {
  return graph.add_node(op_named("reshape"), AttrMap{}, {x, graph.add_constant(target)}, 1, transpose.sources, before)
      ->output();
}

/// The Linear in front of the transpose, on reshaped rows.
Value* linear_of_reshaped(Graph& graph, const LinearNodes& linear, Tensor target, Node* transpose) {
  Value* x = linear.product->input(0);
  target.set_real(target.elements() - 1, static_cast<double>(x->type.shape.dims.back().value()));
  Value* rows = reshaped(graph, x, target, *transpose, transpose);
  Value* y = graph
                 .add_node(linear.product->op, AttrMap{}, {rows, linear.product->input(1)}, 1, linear.product->sources,
                           transpose)
                 ->output();
  if (!linear.bias) return y;
  Value* bias = linear.bias->input(linear.bias->input(0) == linear.product->output() ? 1 : 0);
  return graph.add_node(linear.bias->op, AttrMap{}, {y, bias}, 1, linear.bias->sources, transpose)->output();
}

void convert(Graph& graph, Node* transpose, const Permutation& p, const Tensor& target) {
  Value* x = transpose->input(0);
  const bool features_stay = p.back() + 1 == p.size() && x->type.shape.dims.back().is_constant();
  const auto linear = features_stay ? linear_behind(graph, x) : std::nullopt;
  const bool row = linear && (!linear->bias || linear->bias->input(0)->type.shape.rank() == 1 ||
                              linear->bias->input(1)->type.shape.rank() == 1);
  Value* y =
      row ? linear_of_reshaped(graph, *linear, target, transpose) : reshaped(graph, x, target, *transpose, transpose);
  take_over(graph, transpose->output(), y);
  graph.erase(transpose);
  if (!row) return;
  if (linear->bias) graph.erase(linear->bias);
  graph.erase(linear->product);
}

}  // namespace

static bool run(Graph& graph, PassContext& context) {
  RewriteReport* const report = context.report;
  bool changed = false;
  const std::vector<Node*> nodes = graph.nodes();
  for (Node* node : nodes) {
    if (!node->is("transpose")) continue;
    const Shape& x = node->input(0)->type.shape;
    if (!x.ranked) continue;
    const Permutation p = Transpose::permutation(node->as<Transpose>(), x.rank());
    if (moves_channels_of_images(p) || !keeps_the_order_of_elements(p, x)) continue;
    const std::optional<Tensor> target = target_of(node->output()->type.shape);
    if (!target) continue;
    const std::string where = node->name();
    convert(graph, node, p, *target);
    if (report) report->applied(kPass, kRule, where, "reshape");
    changed = true;
  }
  return changed;
}

Pass transpose_of_unit_axes() {
  return {"transpose-of-unit-axes", "A Transpose that only moves axes of extent 1 becomes a Reshape.", run, {}};
}

}  // namespace opfuse
