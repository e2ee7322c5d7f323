// UnflattenLinear.
//     x[M, K] -- Linear[K -> N] -- Reshape[d.., N]  =  x -- Reshape[d.., K] -- Linear[K -> N]
// Exporters flatten the rows of a Linear (addmm) and unflatten its result, which parts it from its activation and
// residual. A product does not mix rows, so the reshape may come first, where it meets the one that flattened. A Gemm
// becomes MatMul and Add, which take any rank; Keras writes a MatMul at once.
#include <fmt/format.h>

#include "ir/outline.hpp"
#include "ops/gemm.hpp"
#include "ops/registry.hpp"
#include "passes/linear_product.hpp"
#include "passes/passes.hpp"
#include "passes/recompose.hpp"

namespace opfuse {

namespace {

constexpr const char* kPass = "unflatten-linear";
constexpr const char* kRule = "UnflattenLinear";

/// The reshape that alone reads the product's result and only splits its rows: [M, N] -> [d.., N].
Node* splitting_reshape(const Node& product) {
  const Value* y = product.output();
  const Use* use = y->only_use();
  if (!use || use->index != 0) return nullptr;
  Node* reshape = use->node;
  const Shape& from = y->type.shape;
  const Shape& to = reshape->output()->type.shape;
  return reshape->is("reshape") && from.rank() == 2 && to.rank() > 2 && to[to.rank() - 1] == from[1] ? reshape
                                                                                                     : nullptr;
}

/// What was flattened into x, where the result's leading dimensions are again those before; the reshapes cancel then,
/// whatever their targets.
Value* before_flattening(const Value& x, const Shape& to) {
  if (!x.producer || !x.producer->is("reshape")) return nullptr;
  Value* whole = x.producer->input(0);
  std::vector<Dim> leading = whole->type.shape.dims, wanted = to.dims;
  if (leading.size() != wanted.size() || !(leading.back() == x.type.shape[1])) return nullptr;
  leading.pop_back(), wanted.pop_back();
  return leading == wanted ? whole : nullptr;
}

/// The reshape's target with the features of x; absent where it is computed, or a 0 copies what x does not have.
std::optional<Tensor> target_for(const Node& reshape, int64_t features) {
  if (!reshape.input(1) || !reshape.input(1)->is_constant()) return std::nullopt;
  const Tensor& old = *reshape.input(1)->constant;
  Tensor target(old.dtype(), old.sizes());
  for (int64_t i = 0; i < old.elements(); ++i) {
    const bool last = i + 1 == old.elements();
    if (!last && i > 0 && old.integer(i) == 0) return std::nullopt;
    target.set_real(i, static_cast<double>(last ? features : old.integer(i)));
  }
  return target;
}

Tensor transposed(const Tensor& w) {
  Tensor t(w.dtype(), {w.dim(1), w.dim(0)});
  for (int64_t i = 0; i < w.dim(0); ++i)
    for (int64_t j = 0; j < w.dim(1); ++j) t.set_real(j * w.dim(0) + i, w.real(i * w.dim(1) + j));
  return t;
}

std::optional<Decline> check(const LinearProduct& linear, const Node& gemm) {
  if (linear.x->type.shape.rank() != 2)
    return Decline{"rank", fmt::format("{} is not flattened", linear.x->type.text()), {gemm.name()}};
  if (!linear.bias) return std::nullopt;
  const Shape& bias = linear.bias->type.shape;
  if (!linear.bias->is_constant()) return Decline{"computed_bias", "the bias is computed", {gemm.name()}};
  if (bias.rank() <= 1 || bias[0] == Dim(1)) return std::nullopt;
  return Decline{
      "bias_shape", fmt::format("the bias is {}: one for each row", linear.bias->type.text()), {gemm.name()}};
}

/// The rows of x with the dimensions of the result; null where no reshape can make them.
Value* unflattened(Graph& graph, Node* reshape, const LinearProduct& linear) {
  if (Value* whole = before_flattening(*linear.x, reshape->output()->type.shape)) return whole;
  const std::optional<Tensor> target = target_for(*reshape, linear.in);
  if (!target) return nullptr;
  return graph
      .add_node(op_named("reshape"), reshape->attr_map(), {linear.x, graph.add_constant(*target)}, 1, reshape->sources,
                reshape)
      ->output();
}

void convert(Graph& graph, Node* gemm, Node* reshape, const LinearProduct& linear, Value* rows) {
  Value* weight = linear.transposed ? graph.add_constant(transposed(*linear.weight->constant)) : linear.weight;
  Node* last = graph.add_node(op_named("matmul"), AttrMap{}, {rows, weight}, 1, gemm->sources, reshape);
  if (linear.bias)
    last = graph.add_node(op_named("add"), AttrMap{}, {last->output(), linear.bias}, 1, gemm->sources, reshape);
  take_over(graph, reshape->output(), last->output());
  graph.erase(reshape);
  graph.erase(gemm);
}

}  // namespace

static bool run(Graph& graph, PassContext& context) {
  RewriteReport* const report = context.report;
  bool changed = false;
  const std::vector<Node*> order = graph.nodes();
  std::vector<Node*> products;
  for (Node* node : order)
    if (is_matrix_product(*node)) products.push_back(node);
  for (Node* gemm : products) {
    Node* reshape = splitting_reshape(*gemm);
    if (!reshape) continue;
    const std::string where = gemm->name();
    auto read = linear_product(*gemm);
    std::optional<Decline> decline;
    if (auto* refused = std::get_if<Decline>(&read)) decline = std::move(*refused);
    if (!decline) decline = check(std::get<LinearProduct>(read), *gemm);
    Value* rows = decline ? nullptr : unflattened(graph, reshape, std::get<LinearProduct>(read));
    if (!decline && !rows) decline = Decline{"reshape_target", "the reshape's target is computed, or copies", {where}};
    if (decline) {
      if (report) report->declined(kPass, kRule, where, std::move(*decline));
      continue;
    }
    convert(graph, gemm, reshape, std::get<LinearProduct>(read), rows);
    if (report) report->applied(kPass, kRule, where, "reshape, then matmul and add");
    changed = true;
  }
  return changed;
}

Pass unflatten_linear() {
  return {"unflatten-linear", "A Linear whose rows were flattened works on the rank around it.", run, {}};
}

}  // namespace opfuse
