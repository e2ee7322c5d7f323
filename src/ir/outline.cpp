// Outlining and its inverse.
//
//     a -> n1 -> n2 -> b            a -> [ n1 -> n2 ] -> b          constants w stay operands, scalars move inside
//          w                         w ->
#include "ir/outline.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.hpp"
#include "ir/body.hpp"

namespace opfuse {

std::vector<Value*> external_reads(const std::vector<Node*>& nodes) {
  std::vector<Value*> reads;
  const std::unordered_set<const Node*> inside(nodes.begin(), nodes.end());
  std::unordered_set<const Value*> seen;
  for (Node* node : nodes)
    for (Value* v : node->inputs)
      if (v && !inside.contains(v->producer) && seen.insert(v).second) reads.push_back(v);
  return reads;
}

Value* outside_of(const Node& node, const Value* inner) {
  const std::vector<Value*>& all = node.body ? node.body->inputs() : node.inputs;
  const auto at = std::find(all.begin(), all.end(), inner);
  return at == all.end() ? nullptr : node.inputs[static_cast<size_t>(at - all.begin())];
}

bool read_outside(const Graph& graph, const Value* v, const std::vector<Node*>& nodes) {
  if (graph.is_output(v)) return true;
  return std::any_of(v->uses.begin(), v->uses.end(),
                     [&](const Use& use) { return std::find(nodes.begin(), nodes.end(), use.node) == nodes.end(); });
}

std::vector<Value*> external_results(const Graph& graph, const std::vector<Node*>& nodes) {
  std::vector<Value*> results;
  for (Node* node : nodes)
    for (Value* v : node->outputs)
      if (read_outside(graph, v, nodes)) results.push_back(v);
  return results;
}

std::vector<Source> united_sources(const std::vector<Node*>& nodes) {
  const auto hash = [](const Source* s) { return std::hash<std::string>()(s->name); };
  const auto same = [](const Source* a, const Source* b) { return *a == *b; };
  std::unordered_set<const Source*, decltype(hash), decltype(same)> seen;
  std::vector<Source> sources;
  for (const Node* node : nodes)
    for (const Source& s : node->sources)
      if (seen.insert(&s).second) sources.push_back(s);
  return sources;
}

void take_over(Graph& graph, Value* old, Value* now) {
  const std::string name = old->name;
  const bool becomes_output = graph.is_output(old) && !graph.is_output(now);
  graph.replace_uses(old, now);
  old->name.clear();
  if (now->producer && (now->name.empty() || becomes_output)) now->name = name;
}

namespace {

using ValueMap = std::unordered_map<int, Value*>;  // by id, looked up only

Value* mapped(const ValueMap& map, const Value* v) { return v ? map.at(v->id) : nullptr; }

// Copies one node into `to`, operands through `map`, and enters its results into `map`.
Node* copy_node(Graph& to, const Node& node, ValueMap& map, Node* before) {
  std::vector<Value*> inputs;
  std::vector<TensorType> types;
  for (const Value* v : node.inputs) inputs.push_back(mapped(map, v));
  for (const Value* v : node.outputs) types.push_back(v->type);
  Node* copy = to.add_node(node.op, node.attrs_, std::move(inputs), node.outputs.size(), node.sources, before, types);
  if (node.body) copy->body = std::make_unique<Graph>(node.body->clone());
  copy->label = node.label;
  copy->pattern = node.pattern;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    map[node.outputs[i]->id] = copy->outputs[i];
    copy->outputs[i]->name = node.outputs[i]->name;
  }
  return copy;
}

struct Body {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  std::vector<Value*> operands;  // of the outer graph
  std::vector<Value*> results;   // of the outer graph
};

Body make_body(const Graph& graph, const std::vector<Node*>& nodes) {
  Body body;
  ValueMap map;
  for (Value* v : external_reads(nodes)) {
    if (v->is_constant() && belongs_in_body(*v)) {
      map[v->id] = body.graph->add_constant(*v->constant, v->name);
    } else {
      map[v->id] = body.graph->add_input(v->name, v->type);
      body.operands.push_back(v);
    }
  }
  for (const Node* node : nodes) copy_node(*body.graph, *node, map, nullptr);
  body.results = external_results(graph, nodes);
  std::vector<Value*> outputs;
  for (Value* v : body.results) outputs.push_back(map.at(v->id));
  body.graph->set_outputs(std::move(outputs));
  return body;
}

/// Whether a reader of the node stands before it, which only several results can cause.
bool read_before(const Graph& graph, const Node& node) {
  constexpr size_t kFew = 8;
  std::unordered_set<const Node*> readers;
  for (const Value* v : node.outputs) {
    for (const Use& use : v->uses) readers.insert(use.node);
  }
  const std::vector<Node*>& order = graph.nodes();
  const auto here = std::find(order.begin(), order.end(), &node);
  if (readers.size() > kFew)
    return std::any_of(order.begin(), here, [&](const Node* n) { return readers.contains(n); });
  return std::any_of(readers.begin(), readers.end(),
                     [&](const Node* reader) { return std::find(order.begin(), here, reader) != here; });
}

}  // namespace

bool belongs_in_body(const Value& constant) {
  const Tensor& t = *constant.constant;
  return t.elements() <= 1 || !is_float(t.dtype());
}

Node* outline(Graph& graph, const std::vector<Node*>& nodes, const Outline& how) {
  OPFUSE_CHECK(!nodes.empty(), "an empty group");
  Body body = make_body(graph, nodes);
  Node* node = graph.add_node(how.op, std::shared_ptr<const void>(), body.operands, body.results.size(),
                              united_sources(nodes), nodes.back(), types_of(body.results));
  node->body = std::move(body.graph);
  node->label = how.label;
  node->pattern = how.pattern;
  for (size_t i = 0; i < body.results.size(); ++i) take_over(graph, body.results[i], node->outputs[i]);
  graph.erase(nodes);
  if (read_before(graph, *node)) graph.sort_topologically();
  return node;
}

OutlinedCopy outline_copy(const Graph& graph, const std::vector<Node*>& nodes, const Outline& how) {
  Body body = make_body(graph, nodes);
  OutlinedCopy copy;
  std::vector<Value*> operands;
  for (Value* v : body.operands)
    operands.push_back(v->is_constant() ? copy.graph.add_constant(*v->constant, v->name)
                                        : copy.graph.add_input(v->name, v->type));
  copy.node = copy.graph.add_node(how.op, std::shared_ptr<const void>(), operands, body.results.size(),
                                  united_sources(nodes), nullptr, types_of(body.results));
  copy.node->body = std::move(body.graph);
  copy.node->label = how.label;
  copy.node->pattern = how.pattern;
  copy.graph.set_outputs(copy.node->outputs);
  return copy;
}

std::unordered_set<std::string> names_of_values(const Graph& graph) {
  std::unordered_set<std::string> names;
  const auto add = [&](const std::vector<Value*>& values) {
    for (const Value* v : values) names.insert(v->name);
  };
  add(graph.inputs());
  add(graph.constants());
  for (const Node* node : graph.nodes()) add(node->outputs);
  return names;
}

std::vector<Value*> inline_body(Graph& graph, const Graph& body, const std::vector<Value*>& inputs, Node* before,
                                std::unordered_set<std::string>& taken) {
  ValueMap map;
  for (size_t i = 0; i < body.inputs().size(); ++i) map[body.inputs()[i]->id] = inputs[i];
  for (const Value* c : body.constants()) map[c->id] = graph.add_constant(*c->constant);
  const std::vector<Value*>& results = body.outputs();
  for (const Node* node : body.nodes()) {
    Node* copy = copy_node(graph, *node, map, before);
    for (size_t i = 0; i < copy->outputs.size(); ++i) {
      const std::string name = std::exchange(copy->outputs[i]->name, {});
      const bool result = std::find(results.begin(), results.end(), node->outputs[i]) != results.end();
      if (!result && !name.empty() && taken.insert(name).second) copy->outputs[i]->name = name;
    }
  }
  std::vector<Value*> outputs;
  for (const Value* v : body.outputs()) outputs.push_back(map.at(v->id));
  return outputs;
}

/// Of the names in a body, those that the graph has already. A set of all its names, for each body of thousands, would
/// be most of the work.
static std::unordered_set<std::string> names_taken(const Graph& graph, const Graph& body) {
  std::unordered_set<std::string> wanted, taken;
  for (const Node* node : body.nodes())
    for (const Value* v : node->outputs)
      if (!v->name.empty()) wanted.insert(v->name);
  if (wanted.empty()) return taken;
  const auto visit = [&](const std::vector<Value*>& values) {
    for (const Value* v : values)
      if (wanted.contains(v->name)) taken.insert(v->name);
  };
  visit(graph.inputs());
  visit(graph.constants());
  for (const Node* node : graph.nodes()) visit(node->outputs);
  return taken;
}

std::vector<Value*> inline_body(Graph& graph, const Graph& body, const std::vector<Value*>& inputs, Node* before) {
  std::unordered_set<std::string> taken = names_taken(graph, body);
  return inline_body(graph, body, inputs, before, taken);
}

void expand_groups(Graph& graph) {
  const std::vector<Node*> nodes = graph.nodes();
  std::unordered_set<std::string> taken = names_of_values(graph);
  for (Node* node : nodes) {
    if (node->op != fused_op()) continue;
    const std::vector<Value*> results = inline_body(graph, *node->body, node->inputs, node, taken);
    for (size_t i = 0; i < results.size(); ++i) take_over(graph, node->outputs[i], results[i]);
    graph.erase(node);
  }
}

bool expand_bodies(Graph& graph) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    const std::vector<Node*> nodes = graph.nodes();
    std::unordered_set<std::string> taken = names_of_values(graph);
    for (Node* node : nodes) {
      if (node->body && !stands_for_body(*node)) changed |= expand_bodies(*node->body);
      if (!stands_for_body(*node)) continue;
      std::vector<Value*> results = inline_body(graph, *node->body, node->inputs, node, taken);
      for (size_t i = 0; i < results.size(); ++i) take_over(graph, node->outputs[i], results[i]);
      graph.erase(node);
      changed = again = true;
    }
  }
  return changed;
}

}  // namespace opfuse
