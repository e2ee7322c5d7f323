// Linears of one value become one product.
//
//         .-- Linear a -- q                                    .-- slice -- q
//     x --+-- Linear b -- k        x -- Linear [a | b | c] -- -+-- slice -- k
//         '-- Linear c -- v                                    '-- slice -- v
//
// The weights lie beside each other in one constant, and each reader reads its columns of the one result where they
// are: attention takes its heads from there, others a view. Each result is the same sum of the same products; the
// product has the labels of the groups it stands for. A module of several Linears is a set of its own. A set is merged
// as far as its members may wait for each other: the one result lives from the first of them to the last reader.
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_set>

#include "base/copy_bytes.hpp"
#include "fusion/grouping.hpp"
#include "ir/outline.hpp"
#include "ir/value_name.hpp"
#include "match/movement.hpp"
#include "match/qdq.hpp"
#include "ops/concat.hpp"
#include "ops/gemm.hpp"
#include "ops/is_a.hpp"
#include "ops/registry.hpp"
#include "ops/slice.hpp"
#include "passes/linear_product.hpp"
#include "shape/held_memory.hpp"
#include "shape/join.hpp"
#include "shape/takes_movements.hpp"

namespace opfuse {
namespace {

constexpr const char* kPass = "merge-siblings";
constexpr double kMoreMemory = 1.02;  // of the peak; what differs less is the estimate's own error

/// y = x w [+ b] inside a fused node; constants share their storage with the graph's.
struct Linear {
  Node* group = nullptr;
  size_t result = 0;    ///< of the group; 0 where the group goes on
  size_t operand = 0;   ///< of the group: x, which may be replaced while others are merged
  Tensor weight, bias;  ///< bias: empty when there is none
  bool transposed = false;
  int64_t in = 0, out = 0;
  std::string weight_name, inner_name;  ///< inner: of its result where the group goes on
  Value* x() const { return group->inputs[operand]; }
  Value* y() const { return group->outputs[result]; }
};

// ---- reading groups

/// The group's nodes in a graph of their own, with the constants it reads.
Graph flattened(const Node& group, std::map<const Value*, size_t>& operand_of) {
  Graph flat;
  std::vector<Value*> operands;
  for (size_t i = 0; i < group.inputs.size(); ++i) {
    const Value* operand = group.inputs[i];
    operands.push_back(operand->is_constant() ? flat.add_constant(*operand->constant, operand->name)
                                              : flat.add_input(operand->name, operand->type));
    operand_of[operands.back()] = i;
  }
  flat.set_outputs(inline_body(flat, *group.body, operands, nullptr));
  expand_bodies(flat);
  return flat;
}

struct GroupOfLinears {
  std::vector<Linear> linears;
  std::optional<Decline> decline;  ///< it does something else too
};

/// A product of weights behind DequantizeLinear, which stand outside of the group.
bool is_dequantized(const Node& group, const std::map<const Value*, size_t>& operand_of, const Node& product) {
  const auto of = [&](size_t i) {
    const auto at = operand_of.find(product.input(i));
    return at == operand_of.end() ? nullptr : group.inputs[at->second];
  };
  return of(0) && of(1) && !of(1)->is_constant() && is_constant_or_dequantized(of(1));
}

GroupOfLinears linears_of(Node* group) {
  GroupOfLinears found;
  std::map<const Value*, size_t> operand_of;
  const Graph flat = flattened(*group, operand_of);
  size_t nodes = 0;
  for (const Node* node : flat.nodes()) {
    if (!is_matrix_product(*node)) continue;
    const auto read = linear_product(*node);
    if (is_dequantized(*group, operand_of, *node)) {
      Linear linear{.group = group, .operand = operand_of.at(node->input(0))};
      if (group->outputs.size() > found.linears.size() && group->outputs.size() > 1)
        linear.result = found.linears.size();  // a module of several has one result for each
      else
        linear.inner_name = node->output()->name;
      found.linears.push_back(std::move(linear));
      found.decline = Decline{
          "dequantized", fmt::format("{} keeps its own quantised weights and scales", group->label), {group->label}};
    }
    if (!std::holds_alternative<LinearProduct>(read)) continue;
    const LinearProduct& p = std::get<LinearProduct>(read);
    if (!operand_of.contains(p.x) || p.x->is_constant()) continue;
    Linear linear{group, 0, operand_of.at(p.x), *p.weight->constant, {}, p.transposed, p.in, p.out, p.weight->name};
    const Value* y = node->output();
    const Value* bias = p.bias;
    ++nodes;
    const Node* add = node->output()->only_reader();
    if (const Value* row = add && !bias ? row_bias(*add, y, p.out) : nullptr) {
      bias = row;
      y = add->output();
      ++nodes;
    }
    if (bias && (!bias->is_constant() || bias->constant->elements() != p.out)) continue;
    if (bias) linear.bias = bias->constant->reshaped({p.out});
    const auto at = std::find(flat.outputs().begin(), flat.outputs().end(), y);
    if (at == flat.outputs().end() || !y->uses.empty())
      found.decline = Decline{"epilogue", fmt::format("{} goes on behind its Linear", group->label), {group->label}};
    if (at == flat.outputs().end()) linear.inner_name = y->name;
    if (at != flat.outputs().end()) linear.result = static_cast<size_t>(at - flat.outputs().begin());
    found.linears.push_back(std::move(linear));
  }
  if (nodes != flat.nodes().size() && !found.linears.empty() && !found.decline)
    found.decline = Decline{"epilogue", fmt::format("{} is more than its Linear", group->label), {group->label}};
  return found;
}

// ---- may they wait for each other

/// A reader that needs its operand's rows side by side, or null.
const Node* gathering_reader(const Value* value, const Legality& legal) {
  for (const Use& use : value->uses) {
    const Node& node = *use.node;
    if (is_a<Concat>(node)) return &node;
    if (takes_movements(node) && !legal(node)) continue;
    if (!moves_elements(node)) continue;
    for (const Value* moved : node.outputs)
      for (const Use& next : moved->uses)
        if (const bool taken = takes_movements(*next.node) && !legal(*next.node);
            !taken && (!moves_elements(*next.node) || gathering_reader(moved, legal)))
          return &node;
  }
  return nullptr;
}

std::optional<Decline> cannot_be_columns(const Graph& graph, const Linear& linear, const Legality& legal) {
  const Value* y = linear.y();
  if (graph.is_output(y))
    return Decline{"graph_output", fmt::format("\"{}\" is an output of the graph", y->name), {y->name}};
  if (const Node* reader = gathering_reader(y, legal))
    return Decline{"moves_elements",
                   fmt::format("{} \"{}\" would copy its columns", reader->op->name, reader->name()),
                   {reader->name()}};
  return std::nullopt;
}

// ---- merging

/// [in, out] beside each other.
Tensor joined_weights(const std::vector<Linear>& linears, int64_t out) {
  const DType dtype = linears.front().weight.dtype();
  const size_t size = byte_size(dtype), row = static_cast<size_t>(out) * size;
  Tensor all(dtype, {linears.front().in, out});
  char* to = static_cast<char*>(all.mutable_data());
  for (const Linear& l : linears) {
    const char* from = static_cast<const char*>(l.weight.data());
    const size_t in = static_cast<size_t>(l.in), width = static_cast<size_t>(l.out);
    for (size_t k = 0; k < in; ++k) {
      if (!l.transposed)
        copy_bytes(to + k * row, from + k * width * size, width * size);
      else
        for (size_t n = 0; n < width; ++n) std::memcpy(to + k * row + n * size, from + (n * in + k) * size, size);
    }
    to += width * size;
  }
  return all;
}

Tensor joined_biases(const std::vector<Linear>& linears, int64_t out) {
  const DType dtype = linears.front().weight.dtype();
  Tensor all(dtype, {out});  // zeros where a Linear has none
  char* to = static_cast<char*>(all.mutable_data());
  for (const Linear& l : linears) {
    if (!l.bias.empty()) std::memcpy(to, l.bias.data(), l.bias.bytes());
    to += static_cast<size_t>(l.out) * byte_size(dtype);
  }
  return all;
}

Value* columns_of(Graph& graph, Value* whole, int64_t first, int64_t count, Node* before) {
  auto attrs = std::make_shared<Slice::Attrs>();
  attrs->axes = {static_cast<int64_t>(whole->type.shape.rank()) - 1};
  attrs->starts = {first};
  attrs->ends = {first + count};
  return graph.add_node(ops().find("slice"), attrs, {whole}, 1, {}, before)->output();
}

std::vector<Node*> groups_of(const std::vector<Linear>& linears) {
  std::vector<Node*> groups;
  std::unordered_set<const Node*> seen;
  for (const Linear& l : linears)
    if (seen.insert(l.group).second) groups.push_back(l.group);
  return groups;
}

/// The Linears in front of `before`, as one group; null when that is not a kernel.
Node* joined_product(Graph& graph, const std::vector<Linear>& linears, Node* before, const Legality& legal) {
  const std::vector<Node*> groups = groups_of(linears);
  std::vector<std::string> labels, names;
  int64_t out = 0;
  for (const Node* group : groups) labels.push_back(group->label);
  for (const Linear& l : linears) {
    names.push_back(l.weight_name);
    out += l.out;
  }
  std::string name = fmt::format("{}", fmt::join(names, "+"));
  if (graph.find_value(name)) name.clear();
  Value* weights = graph.add_constant(joined_weights(linears, out), name);
  const std::vector<Source> sources = united_sources(groups);
  std::vector<Node*> nodes{
      graph.add_node(ops().find("matmul"), AttrMap{}, {linears.front().x(), weights}, 1, sources, before)};
  if (std::any_of(linears.begin(), linears.end(), [](const Linear& l) { return !l.bias.empty(); })) {
    Value* bias = graph.add_constant(joined_biases(linears, out));
    nodes.push_back(graph.add_node(ops().find("add"), AttrMap{}, {nodes.front()->output(), bias}, 1, sources, before));
  }
  const Outline how{fused_op(), fmt::format("{}", fmt::join(labels, "+")), groups.front()->pattern};
  graph.set_outputs([&] {  // a result that nobody reads yet is none
    std::vector<Value*> outputs = graph.outputs();
    outputs.push_back(nodes.back()->output());
    return outputs;
  }());
  const auto outlined = outline_unless(graph, nodes, how, legal);
  Node* joined = std::holds_alternative<Node*>(outlined) ? std::get<Node*>(outlined) : nullptr;
  std::vector<Value*> outputs = graph.outputs();
  outputs.pop_back();
  graph.set_outputs(outputs);
  if (!joined)
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) graph.erase(*it);
  return joined;
}

bool merge(Graph& graph, const std::vector<Linear>& linears, const Legality& legal) {
  Node* before = linears.front().group;
  Node* joined = joined_product(graph, linears, before, legal);
  if (!joined) return false;
  int64_t first = 0;
  for (const Linear& l : linears) {
    take_over(graph, l.y(), columns_of(graph, joined->output(), first, l.out, before));
    first += l.out;
  }
  for (Node* group : groups_of(linears)) graph.erase(group);
  return true;
}

// ---- sets

struct Set {
  std::vector<Linear> linears;
  std::vector<ShapeVerdict> others;  ///< one Linear each, with its reason
};

ShapeVerdict told(const std::vector<Linear>& linears, std::optional<Decline> why) {
  ShapeVerdict told{.pass = kPass, .value = value_name(*linears.front().x()), .refused = std::move(why)};
  for (const Linear& l : linears) told.nodes.push_back(l.inner_name.empty() ? value_name(*l.y()) : l.inner_name);
  for (const Node* group : groups_of(linears))
    for (const Source& source : group->sources) told.sources.push_back(source.name);
  return told;
}

/// Linears of one value and one type; those that cannot be columns stand apart.
std::vector<Set> sets_of(const Graph& graph, const Legality& legal) {
  std::vector<Set> sets;
  std::map<std::tuple<int, int, DType>, size_t> by_source;  // value, module of several Linears, type
  for (Node* node : graph.nodes()) {
    if (node->op != fused_op()) continue;
    GroupOfLinears group = linears_of(node);
    for (Linear& l : group.linears) {
      const int module = group.linears.size() > 1 ? node->id : -1;
      const auto [at, fresh] = by_source.emplace(std::tuple(l.x()->id, module, l.weight.dtype()), sets.size());
      if (fresh) sets.emplace_back();
      Set& set = sets[at->second];
      const auto why = group.decline ? group.decline : cannot_be_columns(graph, l, legal);
      if (why)
        set.others.push_back(told({l}, why));
      else
        set.linears.push_back(std::move(l));
    }
  }
  std::erase_if(sets, [](const Set& set) { return set.linears.size() + set.others.size() < 2; });
  return sets;
}

/// Cut where holding one more result until its last reader would raise the peak.
std::vector<std::vector<Linear>> cut_by_memory(HeldMemory& memory, const std::vector<Linear>& linears) {
  const auto most = kMoreMemory * static_cast<double>(memory.peak());
  std::vector<std::vector<Linear>> parts;
  for (const Linear& l : linears) {
    memory.hold(l.y());
    if (!parts.empty() && static_cast<double>(memory.peak()) <= most) {
      parts.back().push_back(l);
      continue;
    }
    memory.release_last();
    memory.release();
    memory.hold(l.y());
    parts.push_back({l});
  }
  memory.release();
  return parts;
}

/// Why a set stays apart as a whole.
std::optional<Decline> unfit(const Set& set, size_t parts) {
  const std::vector<Linear>& linears = set.linears;
  if (linears.size() < 2) return Decline{"no_sibling", "the other Linears of its operand stay apart", {}};
  if (linears[0].group != linears[1].group) return std::nullopt;
  // a module of several Linears is one node: it goes as a whole or stays
  if (!set.others.empty()) return Decline{"module", "another Linear of its module stays apart", {}};
  if (parts > 1) return Decline{"memory", "results would wait for readers far behind those of their siblings", {}};
  return std::nullopt;
}

ShapeVerdict try_merge(Graph& fused, const std::vector<Linear>& part, const Legality& legal) {
  ShapeVerdict verdict = told(part, std::nullopt);
  if (part.size() < 2)
    verdict.refused = Decline{"memory", "its result would wait for readers far behind those of its siblings", {}};
  else if (!merge(fused, part, legal))
    verdict.refused = Decline{"not_generated", "the merged product is not a kernel of the target", {}};
  return verdict;
}

bool run(Graph& fused, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts) {
  const auto legal = [&](const Node& node) { return context.refuses(kPass, node); };
  bool changed = false;
  std::optional<HeldMemory>
      memory;  // of the graph as it was: a merged product stands where the first of its Linears did
  for (const Set& set : sets_of(fused, legal)) {
    verdicts.insert(verdicts.end(), set.others.begin(), set.others.end());
    if (set.linears.empty()) continue;
    if (!memory) memory.emplace(fused);
    const std::vector<std::vector<Linear>> parts = cut_by_memory(*memory, set.linears);
    auto why = unfit(set, parts.size());
    if (!why) why = context.switched_off(kPass);
    if (why) {
      verdicts.push_back(told(set.linears, why));
      continue;
    }
    for (const std::vector<Linear>& part : parts) {
      for (const Linear& l : part) memory->hold(l.y());
      verdicts.push_back(try_merge(fused, part, legal));
      const bool merged = !verdicts.back().refused;
      merged ? memory->keep() : memory->release();
      changed |= merged;
    }
  }
  if (!changed) fused.remove_dead_nodes();  // the constants of products that were refused
  return changed;
}

}  // namespace

ShapingPass merge_siblings() { return {kPass, "Linears of one value become one product.", run}; }

}  // namespace opfuse
