// Terms of tokens: a table that is added to a concatenation of constants and one computed part is added where that part
// is made.
//
//     class token ------------------.
//     x -- A: convolution -- r -----+-- [concat, + table] -- y
//
//     class token + its row of the table ---------.
//     x -- [A, r, + the other rows] --------------+-- concat -- y
//
// Vision transformers begin so. The sum read all tokens and stored them once more; now A stores them into y itself and
// the rest is constant: the same additions, so the same bits. A keeps its kind of kernel, else it is left alone.
#include <fmt/format.h>

#include "base/copy_bytes.hpp"
#include "base/product_of.hpp"
#include "fusion/grouping.hpp"
#include "interp/interpreter.hpp"
#include "ir/value_name.hpp"
#include "ops/add.hpp"
#include "ops/concat.hpp"
#include "ops/is_a.hpp"
#include "ops/reshape.hpp"
#include "shape/join.hpp"

namespace opfuse {
namespace {

constexpr const char* kPass = "add-in-parts";

/// y = concat(parts) + table, all parts but one constant.
struct Terms {
  Node* group = nullptr;
  const Node *concat = nullptr, *sum = nullptr;  ///< in the group's body
  std::vector<Value*> parts;                     ///< outside
  Value* table = nullptr;
  int64_t axis = 0;             ///< from the front
  size_t made = 0, first = 0;   ///< which part is computed; the operand of the sum that is the concatenation
  Node* maker = nullptr;        ///< the group that computes it
  std::vector<Node*> reshapes;  ///< between the maker and the concatenation
};

/// The table has one element or all of the result along each axis, so it is cut like the result.
bool spans(const Tensor& table, const Shape& result) {
  if (table.rank() > result.rank()) return false;
  const size_t ahead = result.rank() - table.rank();
  for (size_t d = 0; d < table.rank(); ++d)
    if (table.dim(d) != 1 && !(Dim(table.dim(d)) == result[d + ahead])) return false;
  return true;
}

/// The group that alone makes a value, reshapes aside.
bool find_maker(Terms& terms) {
  const Value* v = terms.parts[terms.made];
  while (v->producer && is_a<Reshape>(*v->producer) && v->only_use() && v->as_output == 0) {
    terms.reshapes.insert(terms.reshapes.begin(), v->producer);
    v = v->producer->input(0);
  }
  terms.maker = v->producer;
  return terms.maker && terms.maker->op == fused_op() && terms.maker->outputs.size() == 1 && v->only_use() &&
         v->as_output == 0 && leading_convolution(*terms.maker);
}

std::optional<Terms> terms_of(Node& group) {
  if (group.op != fused_op() || group.outputs.size() != 1 || group.body->nodes().size() != 2) return std::nullopt;
  Terms terms{.group = &group, .concat = group.body->nodes()[0], .sum = group.body->nodes()[1]};
  if (!is_a<Concat>(*terms.concat) || !is_a<Add>(*terms.sum)) return std::nullopt;
  terms.first = terms.sum->input(0) == terms.concat->output() ? 0 : 1;
  terms.table = outside_of(group, terms.sum->input(1 - terms.first));
  const Shape& result = group.output()->type.shape;
  if (!terms.table || !terms.table->is_constant() || !result.is_static() ||
      !(terms.concat->output()->type == group.output()->type) || !spans(*terms.table->constant, result))
    return std::nullopt;
  terms.axis = terms.concat->as<Concat>().axis;
  if (terms.axis < 0) terms.axis += static_cast<int64_t>(result.rank());
  size_t computed = 0;
  for (const Value* inner : terms.concat->inputs) {
    terms.parts.push_back(outside_of(group, inner));
    if (!terms.parts.back()) return std::nullopt;
    if (!terms.parts.back()->is_constant()) ++computed, terms.made = terms.parts.size() - 1;
  }
  return computed == 1 && terms.parts.size() > 1 && find_maker(terms) ? std::optional(terms) : std::nullopt;
}

/// The table's elements for [begin, begin + count) of the result's axis.
Tensor cut(const Tensor& table, int64_t axis, size_t rank, int64_t begin, int64_t count) {
  const int64_t own = axis - static_cast<int64_t>(rank - table.rank());
  if (own < 0 || table.dim(static_cast<size_t>(own)) == 1) return table;
  std::vector<int64_t> sizes = table.sizes();
  const auto at = sizes.begin() + own;
  const int64_t all = *at;
  const int64_t outer = product_of({sizes.begin(), at});
  const auto inner = static_cast<size_t>(product_of({at + 1, sizes.end()})) * byte_size(table.dtype());
  *at = count;
  Tensor rows(table.dtype(), sizes);
  const auto* from = static_cast<const char*>(table.data()) + static_cast<size_t>(begin) * inner;
  auto* to = static_cast<char*>(rows.mutable_data());
  for (int64_t i = 0; i < outer;
       ++i, from += static_cast<size_t>(all) * inner, to += static_cast<size_t>(count) * inner)
    copy_bytes(to, from, static_cast<size_t>(count) * inner);
  return rows;
}

/// The rows of the table for each part.
std::vector<Tensor> rows_of(const Terms& terms) {
  std::vector<Tensor> rows;
  int64_t begin = 0;
  const size_t rank = terms.group->output()->type.shape.rank();
  for (const Value* part : terms.parts) {
    const int64_t count = part->type.shape[static_cast<size_t>(terms.axis)].value();
    rows.push_back(cut(*terms.table->constant, terms.axis, rank, begin, count));
    begin += count;
  }
  return rows;
}

std::vector<Value*> in_order(const Terms& terms, Value* part, Value* rows) {
  return terms.first == 0 ? std::vector<Value*>{part, rows} : std::vector<Value*>{rows, part};
}

Node* sum_of(Graph& graph, const Terms& terms, Value* part, Tensor rows) {
  return graph.add_node(terms.sum->op, terms.sum->attrs_, in_order(terms, part, graph.add_constant(std::move(rows))), 1,
                        terms.sum->sources, terms.group);
}

/// The sum of a constant part as a constant.
Value* computed(Graph& graph, Node* sum) {
  const std::vector<const Tensor*> operands = {&*sum->input(0)->constant, &*sum->input(1)->constant};
  Value* result = graph.add_constant(interpret_node(*sum, operands, {.precision = Precision::typed})[0]);
  graph.erase(sum);
  return result;
}

/// The concatenation of the sums, in the group's place. `made` is the computed one.
void place(Graph& graph, const Terms& terms, const std::vector<Tensor>& rows, Value* made) {
  std::vector<Value*> sums;
  for (size_t i = 0; i < terms.parts.size(); ++i)
    sums.push_back(i == terms.made ? made : computed(graph, sum_of(graph, terms, terms.parts[i], rows[i])));
  Node* concat = graph.add_node(terms.concat->op, terms.concat->attrs_, sums, 1, terms.group->sources, terms.group);
  take_over(graph, terms.group->output(), concat->output());
  graph.erase(terms.group);
}

/// Why the maker does not take the sum; nothing where it did.
std::optional<Decline> try_terms(Graph& graph, const Terms& terms, const ShapeContext& context) {
  if (auto off = context.switched_off(kPass)) return off;
  Value* part = terms.parts[terms.made];
  const std::vector<Tensor> rows = rows_of(terms);
  Node* sum = sum_of(graph, terms, part, rows[terms.made]);
  sum->output()->name = fmt::format("{}[{}]", value_name(*terms.group->output()), terms.made);
  const auto read_by_group = [&](Value* from, Value* to) {
    for (size_t i = 0; i < terms.group->inputs.size(); ++i)
      if (terms.group->inputs[i] == from) graph.set_input(terms.group, i, to);
  };
  read_by_group(part, sum->output());
  std::vector<Node*> nodes = {terms.maker};
  nodes.insert(nodes.end(), terms.reshapes.begin(), terms.reshapes.end());
  nodes.push_back(sum);
  const auto refuses = [&](const Node& joined) -> std::optional<Decline> {
    if (auto why = context.refuses(kPass, joined)) return why;
    if (!context.skeleton || context.skeleton(joined) == context.skeleton(*terms.maker)) return std::nullopt;
    return Decline{"no_gain", "its kernel would be of another kind", {}};
  };
  const auto joined =
      outline_unless(graph, nodes, {fused_op(), name_of_group(*terms.maker), terms.maker->pattern}, refuses);
  if (const auto* why = std::get_if<Decline>(&joined)) {
    read_by_group(sum->output(), part);
    graph.erase(sum);
    graph.remove_dead_nodes();  // the rows
    return *why;
  }
  place(graph, terms, rows, std::get<Node*>(joined)->output());
  return std::nullopt;
}

bool run(Graph& graph, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts) {
  bool changed = false;
  const std::vector<Node*> nodes = graph.nodes();
  for (Node* node : nodes) {
    const std::optional<Terms> terms = terms_of(*node);
    if (!terms) continue;
    ShapeVerdict verdict{.pass = kPass,
                         .nodes = {name_of_group(*terms->maker), name_of_group(*node)},
                         .value = value_name(*terms->parts[terms->made]),
                         .numbers = {{"bytes", value_bytes(*terms->parts[terms->made], {})}}};
    for (const Node* part : {terms->maker, node})
      for (const Source& source : part->sources) verdict.sources.push_back(source.name);
    verdict.refused = try_terms(graph, *terms, context);
    changed |= !verdict.refused;
    verdicts.push_back(std::move(verdict));
  }
  return changed;
}

}  // namespace

ShapingPass add_in_parts() {
  return {kPass, "Tables added to concatenated tokens are added where the tokens are made.", run};
}

}  // namespace opfuse
