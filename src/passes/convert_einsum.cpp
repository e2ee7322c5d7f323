// EinsumToMatMul: a contraction of two operands is a matrix product between rearrangements.
//
//     bqhd,bkhd->bhqk     a -- transpose (b h q d) --.
//                                                     matmul -- (b h q k)
//                         b -- transpose (b h d k) --'
//
// Labels are batch (both operands and the result), rows (the first and the result), columns (the second and the
// result) or summed (both operands only). Several labels of one kind are merged by Reshape; without batch labels the
// rows stay apart. Refused with the reason: one operand or more than two, a label twice in an operand (diagonals), a
// label summed in one operand alone, axes that broadcast, products without a sum.
#include <fmt/format.h>

#include <algorithm>

#include "ir/outline.hpp"
#include "ops/einsum.hpp"
#include "ops/registry.hpp"
#include "passes/passes.hpp"
#include "passes/recompose.hpp"

namespace opfuse {

namespace {

constexpr const char* kPass = "convert-einsum";
constexpr const char* kRule = "EinsumToMatMul";

using Labels = std::vector<int>;

bool has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

Labels operator+(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Contraction {
  Labels a, b, result;
  Labels batch, rows, columns, summed;
  std::map<int, Dim> extents;
};

Decline no(std::string code, std::string message) { return {std::move(code), std::move(message), {}}; }

std::optional<Decline> check_operand(const Node& node, size_t i, const Labels& labels,
                                     const std::map<int, Dim>& extents) {
  const Shape& shape = node.input(i)->type.shape;
  for (size_t d = 0; d < labels.size(); ++d) {
    if (std::count(labels.begin(), labels.end(), labels[d]) > 1)
      return no("diagonal", fmt::format("operand {} has a label twice", i));
    if (!(shape[d] == extents.at(labels[d])))
      return no("broadcast", fmt::format("axis {} of operand {}, {}, broadcasts", d, i, shape.text()));
  }
  return std::nullopt;
}

std::optional<Decline> read(const Node& node, Contraction& c) {
  if (node.inputs.size() != 2)
    return no("operand_count", fmt::format("{} operands; a matrix product has two", node.inputs.size()));
  std::vector<Shape> shapes;
  for (const Value* v : node.inputs) shapes.push_back(v->type.shape);
  if (!shapes[0].ranked || !shapes[1].ranked) return no("unknown_dimension", "the rank of an operand is not known");
  const EinsumAxes axes = einsum_axes(node.as<Einsum>(), shapes);
  c.a = axes.operands[0], c.b = axes.operands[1], c.result = axes.result, c.extents = axes.extents;
  for (size_t i = 0; i < 2; ++i)
    if (auto decline = check_operand(node, i, axes.operands[i], c.extents)) return decline;
  for (const auto& [label, extent] : c.extents)  // merging would leave reshape a 0, which stands for "as it is"
    if (extent == Dim(0)) return no("empty", "an axis has no elements");
  for (int label : c.result) {
    Labels& kind = !has(c.b, label) ? c.rows : !has(c.a, label) ? c.columns : c.batch;
    kind.push_back(label);
  }
  for (const Labels* operand : {&c.a, &c.b})
    for (int label : *operand) {
      if (has(c.result, label)) continue;
      if (!has(c.a, label) || !has(c.b, label)) return no("sum_of_one", "a label is summed that only one operand has");
      if (operand == &c.a) c.summed.push_back(label);
    }
  if (c.summed.empty()) return no("no_contraction", "nothing is summed");
  if (c.rows.empty() || c.columns.empty()) return no("no_matrix", "a product without rows or columns of its own");
  return std::nullopt;
}

/// Sizes of groups of labels after merging: a number each, -1 for one that is not known, 0 for a leading axis that
/// stays as it is.
std::optional<std::vector<int64_t>> merged_sizes(const Contraction& c, size_t kept, const std::vector<Labels>& groups) {
  std::vector<int64_t> sizes(kept, 0);
  for (const Labels& group : groups) {
    Dim size = 1;
    for (int label : group) size = size * c.extents.at(label);
    sizes.push_back(size.constant().value_or(-1));
  }
  if (std::count(sizes.begin(), sizes.end(), -1) > 1) return std::nullopt;
  return sizes;
}

struct Emitter {
  Graph& graph;
  Node* before;

  /// Rearranged weights are constants at once: what comes next asks for constants.
  Value* op(const char* name, std::vector<Value*> operands, const AttrMap& attrs = {}) const {
    Node* node = graph.add_node(op_named(name), attrs, std::move(operands), 1, before->sources, before);
    std::vector<const Tensor*> tensors;
    for (const Value* v : node->inputs) {
      if (!v->is_constant()) return node->output();
      tensors.push_back(&*v->constant);
    }
    Tensor folded = node->op->reference(node->attrs(), tensors, Precision::typed)[0];
    graph.erase(node);
    return graph.add_constant(std::move(folded));
  }
  Value* arranged(Value* x, const Labels& have, const Labels& want) const {
    if (have == want) return x;
    std::vector<int64_t> perm;
    for (int label : want) perm.push_back(std::find(have.begin(), have.end(), label) - have.begin());
    return op("transpose", {x}, {{"perm", perm}});
  }
  Value* shaped(Value* x, const std::vector<int64_t>& sizes) const {
    return op("reshape", {x, graph.add_constant(Tensor::from_i64(sizes))});
  }
};

std::vector<Labels> apart(const Labels& labels) {
  std::vector<Labels> groups;
  for (int label : labels) groups.push_back({label});
  return groups;
}

/// Shapes of the operands and of the result around the product; absent: nothing to merge or split.
struct Plan {
  std::optional<std::vector<int64_t>> a, b, result;
  bool possible = true;
};

Plan plan_of(const Contraction& c) {
  const bool batched = !c.batch.empty();
  const size_t kept = batched ? c.batch.size() : c.rows.size();
  const bool rows = batched && c.rows.size() > 1, sum = c.summed.size() > 1, columns = c.columns.size() > 1;
  Plan plan;
  const auto set = [&](bool needed, std::optional<std::vector<int64_t>>& sizes, size_t keep,
                       const std::vector<Labels>& groups) {
    if (!needed) return;
    sizes = merged_sizes(c, keep, groups);
    plan.possible &= sizes.has_value();
  };
  set(rows || sum, plan.a, kept, batched ? std::vector<Labels>{c.rows, c.summed} : std::vector<Labels>{c.summed});
  set(sum || columns, plan.b, c.batch.size(), {c.summed, c.columns});
  set(rows || columns, plan.result, kept, apart(batched ? c.rows + c.columns : c.columns));
  return plan;
}

std::optional<Decline> convert(Graph& graph, Node* node) {
  Contraction c;
  if (auto decline = read(*node, c)) return decline;
  const Plan plan = plan_of(c);
  if (!plan.possible) return no("unknown_dimension", "two merged axes have no known size");
  const Emitter emit{graph, node};
  Value* a = emit.arranged(node->input(0), c.a, c.batch + c.rows + c.summed);
  Value* b = emit.arranged(node->input(1), c.b, c.batch + c.summed + c.columns);
  if (plan.a) a = emit.shaped(a, *plan.a);
  if (plan.b) b = emit.shaped(b, *plan.b);
  Value* y = emit.op("matmul", {a, b});
  if (plan.result) y = emit.shaped(y, *plan.result);
  y = emit.arranged(y, c.batch + c.rows + c.columns, c.result);
  take_over(graph, node->output(), y);
  graph.erase(node);
  return std::nullopt;
}

}  // namespace

static bool run(Graph& graph, PassContext& context) {
  RewriteReport* const report = context.report;
  bool changed = false;
  const std::vector<Node*> order = graph.nodes();
  for (Node* node : order) {
    if (!node->is("einsum")) continue;
    const std::string where = node->name(), equation = node->as<Einsum>().equation;
    if (auto decline = convert(graph, node)) {
      if (report) report->declined(kPass, kRule, where, std::move(*decline));
      continue;
    }
    if (report) report->applied(kPass, kRule, where, "\"" + equation + "\" is a matrix product");
    changed = true;
  }
  return changed;
}

Pass convert_einsum() { return {"convert-einsum", "An Einsum of two operands becomes a matrix product.", run, {}}; }

}  // namespace opfuse
