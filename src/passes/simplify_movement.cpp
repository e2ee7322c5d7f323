// Data movement that moves nothing, or could move at once:
//   view(x) = x                              where the result has the type of x (reshape, flatten, squeeze, ...)
//   reshape(view(x), c) = reshape(x, c')     c' without the 0 entries that refer to the view
//   view(reshape(x)) = reshape(x, c)         c: the result's dimensions, where at most one is open
//   transpose(x, identity) = x               transpose(transpose(x, p), q) = transpose(x, p o q)
//   pad(x, 0) = x    slice(x, everything) = x    expand(x, shape of x) = x    cast(x, dtype of x) = x
//   concat(x) = x    sum(x) = max(x) = min(x) = mean(x) = x, of a single operand
#include <algorithm>
#include <array>

#include "match/movement.hpp"
#include "ops/pad.hpp"
#include "ops/registry.hpp"
#include "ops/reshape.hpp"
#include "ops/slice.hpp"
#include "ops/transpose.hpp"
#include "passes/passes.hpp"

namespace opfuse {

namespace {

bool all(const std::vector<int64_t>& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == wanted; });
}

/// The values of an optional operand, or `otherwise` when absent; nothing when it is computed.
std::optional<std::vector<int64_t>> operand_or(const Node& node, size_t i, std::vector<int64_t> otherwise) {
  const Value* v = node.input(i);
  if (v == nullptr) return otherwise;
  if (!v->is_constant()) return std::nullopt;
  return v->constant->to_i64();
}

bool is_zero_pad(const Node& node) {
  const auto pads = operand_or(node, 1, node.as<Pad>().pads);
  return pads && all(*pads, 0);
}

/// A slice with steps of 1 whose result is as large as x takes everything.
bool has_unit_steps(const Node& node) {
  const auto steps = operand_or(node, 4, {});
  return steps && all(*steps, 1);
}

bool is_identity_permutation(const std::vector<size_t>& p) {
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] != i) return false;
  }
  return true;
}

bool moves_nothing(const Node& node) {
  const Value* x = node.input(0);
  if (x == nullptr || !x->type.shape.ranked || node.outputs.size() != 1) return false;
  if (node.is("transpose"))
    return is_identity_permutation(Transpose::permutation(node.as<Transpose>(), x->type.shape.rank()));
  if (!(x->type == node.output()->type)) return false;
  if (is_view(node) || node.is("expand") || node.is("cast")) return true;
  if (node.is("pad")) return is_zero_pad(node);
  if (node.is("slice")) return has_unit_steps(node);
  static constexpr std::array kSingle = {"concat", "sum", "max", "min", "mean"};
  const bool single = std::any_of(kSingle.begin(), kSingle.end(), [&](const char* name) { return node.is(name); });
  return single && node.inputs.size() == 1;
}

/// reshape(view(x), c): reads x itself.
bool merge_views(Graph& graph, Node& node) {
  if (!node.is("reshape") || node.input(0)->producer == nullptr || !is_view(*node.input(0)->producer)) return false;
  const Value* target = node.input(1);
  const Shape& y = node.output()->type.shape;
  if (!target->is_constant() || !y.ranked) return false;
  std::vector<int64_t> entries = target->constant->to_i64();
  int symbolic = 0;
  for (size_t i = 0; i < y.rank(); ++i) {
    entries[i] = y[i].is_constant() ? y[i].value() : -1;
    symbolic += !y[i].is_constant();
    if (entries[i] == 0) return false;
  }
  if (symbolic > 1) return false;
  Value* x = node.input(0)->producer->input(0);
  if (!(Tensor::from_i64(entries).same_bits(*target->constant)))
    graph.set_input(&node, 1, graph.add_constant(Tensor::from_i64(entries)));
  graph.set_input(&node, 0, x);
  return true;
}

/// squeeze, unsqueeze and flatten of what a reshape made: that reshape, to other dimensions.
bool merge_into_reshape(Graph& graph, Node& node) {
  const Node* inner = node.input(0) == nullptr ? nullptr : node.input(0)->producer;
  const Shape& y = node.output()->type.shape;
  if (!is_view(node) || node.is("reshape") || inner == nullptr || !inner->is("reshape") || !y.ranked) return false;
  if (node.input(1) && !node.input(1)->is_constant()) return false;
  std::vector<int64_t> target;
  for (const Dim& d : y.dims) target.push_back(d.is_constant() ? d.value() : -1);
  const auto count = [&](int64_t v) { return std::count(target.begin(), target.end(), v); };
  if (count(-1) > 1 || count(0) > 0) return false;
  std::vector<Source> sources = inner->sources;
  sources.insert(sources.end(), node.sources.begin(), node.sources.end());
  Value* dims = graph.add_constant(Tensor::from_i64(target));
  Node* made = graph.add_node(inner->op, AttrMap{}, {inner->input(0), dims}, 1, std::move(sources), &node);
  if (!(made->output()->type == node.output()->type)) {  // another way to write an open dimension
    graph.erase(made);
    return false;
  }
  if (!graph.is_output(node.output())) made->output()->name = std::exchange(node.output()->name, {});
  graph.replace_uses(node.output(), made->output());
  graph.erase(&node);
  return true;
}

/// transpose(transpose(x, p), q)[d] = x[p[q[d]]]
bool merge_transposes(Graph& graph, Node& node) {
  const Node* inner = node.input(0) == nullptr ? nullptr : node.input(0)->producer;
  if (!node.is("transpose") || inner == nullptr || !inner->is("transpose")) return false;
  const size_t rank = inner->input(0)->type.shape.rank();
  const auto p = Transpose::permutation(inner->as<Transpose>(), rank),
             q = Transpose::permutation(node.as<Transpose>(), rank);
  std::vector<int64_t> perm;
  for (size_t d : q) perm.push_back(static_cast<int64_t>(p[d]));
  std::vector<Source> sources = inner->sources;
  sources.insert(sources.end(), node.sources.begin(), node.sources.end());
  Node* made = graph.add_node(node.op, AttrMap{{"perm", perm}}, {inner->input(0)}, 1, std::move(sources), &node);
  if (!graph.is_output(node.output())) made->output()->name = std::exchange(node.output()->name, {});
  graph.replace_uses(node.output(), made->output());
  graph.erase(&node);
  return true;
}

bool run(Graph& graph, PassContext&) {
  bool changed = false;
  const std::vector<Node*> nodes = graph.nodes();
  for (Node* node : nodes) {
    if (moves_nothing(*node)) {
      if (!graph.can_replace(node->output(), node->input(0))) continue;
      graph.replace_uses(node->output(), node->input(0));
      graph.erase(node);
      changed = true;
    } else {
      changed |= merge_views(graph, *node) || merge_into_reshape(graph, *node) || merge_transposes(graph, *node);
    }
  }
  return changed;
}

}  // namespace

Pass simplify_movement() {
  return {"simplify-movement", "Removes and merges reshapes, transposes and other data movement.", run, {}};
}

}  // namespace opfuse
