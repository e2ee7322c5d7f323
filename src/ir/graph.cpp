// Building and editing the graph. Invariants kept here, checked by verify.cpp:
//   order_ is a topological order; every reading is in its value's `uses`; a value has one producer;
//   names of values are unique; values_ is in id order.
#include "ir/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/fail.hpp"
#include "ir/located.hpp"

namespace opfuse {

namespace {

void remove_use(Value* value, Use use) {
  auto at = std::find(value->uses.begin(), value->uses.end(), use);
  OPFUSE_CHECK(at != value->uses.end(), "a use of value #{} is not recorded", value->id);
  value->uses.erase(at);
}

/// Removes what has these ids; `owned` is in the order of ids.
template <class T>
void erase_ids(std::vector<std::unique_ptr<T>>& owned, std::vector<int> ids) {
  if (ids.empty()) return;
  std::sort(ids.begin(), ids.end());
  const auto first =
      std::lower_bound(owned.begin(), owned.end(), ids.front(), [](const auto& item, int id) { return item->id < id; });
  auto next = ids.begin();
  owned.erase(std::remove_if(first, owned.end(),
                             [&](const auto& item) {
                               while (next != ids.end() && *next < item->id) ++next;
                               return next != ids.end() && *next == item->id;
                             }),
              owned.end());
}

/// Removes nodes from the order: neighbours are, as a rule, erased together.
void erase_nodes(std::vector<Node*>& order, const std::vector<Node*>& nodes) {
  if (nodes.size() == 1) {
    const auto at = std::find(order.begin(), order.end(), nodes.front());
    OPFUSE_CHECK(at != order.end(), "node {} is not in the graph", nodes.front()->name());
    order.erase(at);
    return;
  }
  const std::unordered_set<const Node*> gone(nodes.begin(), nodes.end());
  std::erase_if(order, [&](const Node* n) { return gone.contains(n); });
}

}  // namespace

std::string Node::name() const {
  if (!sources.empty() && !sources[0].name.empty()) return sources[0].name;
  return fmt::format("#{}", id);
}

// ---- values

Value* Graph::new_value(std::string name, TensorType type) {
  auto value = std::make_unique<Value>();
  value->id = next_value_++;
  value->name = std::move(name);
  value->type = std::move(type);
  values_.push_back(std::move(value));
  return values_.back().get();
}

Value* Graph::add_input(std::string name, TensorType type) {
  inputs_.push_back(new_value(std::move(name), std::move(type)));
  return inputs_.back();
}

Value* Graph::add_constant(Tensor tensor, std::string name) {
  Value* value = new_value(std::move(name), tensor.type());
  value->constant = std::move(tensor);
  return value;
}

void Graph::set_outputs(std::vector<Value*> outputs) {
  for (Value* v : outputs) OPFUSE_CHECK(v != nullptr, "a graph output is null");
  for (Value* v : outputs_) v->as_output = 0;
  outputs_ = std::move(outputs);
  for (Value* v : outputs_) ++v->as_output;
}

std::vector<Value*> Graph::values() const {
  std::vector<Value*> out;
  for (const auto& v : values_) out.push_back(v.get());
  return out;
}

std::vector<Value*> Graph::constants() const {
  std::vector<Value*> out;
  for (const auto& v : values_) {
    if (v->is_constant()) out.push_back(v.get());
  }
  return out;
}

std::set<std::string> Graph::symbols() const {
  std::set<std::string> names;
  for (const Value* v : inputs_) {
    for (const Dim& d : v->type.shape.dims) d.collect_symbols(names);
  }
  return names;
}

bool Graph::is_output(const Value* value) const { return value->as_output > 0; }

size_t Graph::read_count(const Value* value) const { return value->uses.size() + value->as_output; }

Value* Graph::find_value(std::string_view value_name) const {
  for (const auto& v : values_) {
    if (v->name == value_name) return v.get();
  }
  return nullptr;
}

Node* Graph::find_node(std::string_view source_name) const {
  for (Node* n : order_) {
    for (const Source& s : n->sources) {
      if (s.name == source_name) return n;
    }
  }
  return nullptr;
}

size_t Graph::position(const Node* node) const {
  // From behind: where groups are replaced by what is in them, first to last, few are left behind the one at hand.
  const auto at = std::find(order_.rbegin(), order_.rend(), node);
  OPFUSE_CHECK(at != order_.rend(), "node {} is not in the graph", node->name());
  return static_cast<size_t>(order_.rend() - at) - 1;
}

// ---- nodes

Node* Graph::add_node(const OpInfo* op, std::shared_ptr<const void> attrs, std::vector<Value*> inputs, size_t outputs,
                      std::vector<Source> sources, Node* before, std::vector<TensorType> types) {
  OPFUSE_CHECK(op != nullptr, "a node without operator");
  if (types.empty()) {
    try {
      types = infer_node(*op, attrs.get(), inputs, outputs);
    } catch (Error& error) {
      throw located(std::move(error), *op, inputs, sources);
    }
  }
  OPFUSE_CHECK(types.size() == outputs, "{} has {} outputs but {} types", op->name, outputs, types.size());
  nodes_.push_back(std::make_unique<Node>());
  Node* node = nodes_.back().get();
  node->id = next_node_++;
  node->op = op;
  node->attrs_ = std::move(attrs);
  node->inputs = std::move(inputs);
  node->sources = std::move(sources);
  for (size_t i = 0; i < node->inputs.size(); ++i) {
    if (node->inputs[i] != nullptr) node->inputs[i]->uses.push_back({node, i});
  }
  for (size_t i = 0; i < outputs; ++i) {
    Value* value = new_value({}, std::move(types[i]));
    value->producer = node;
    value->result = i;
    node->outputs.push_back(value);
  }
  order_.insert(before == nullptr ? order_.end() : order_.begin() + static_cast<std::ptrdiff_t>(position(before)),
                node);
  return node;
}

Node* Graph::add_node(const OpInfo* op, const AttrMap& attrs, std::vector<Value*> inputs, size_t outputs,
                      std::vector<Source> sources, Node* before) {
  OPFUSE_CHECK(op != nullptr, "a node without operator");
  std::shared_ptr<const void> typed;
  try {
    if (op->attrs_from_map) {
      typed = op->attrs_from_map(attrs);
    } else if (!attrs.empty()) {
      throw fail(E::bad_attribute, "{} has no attribute \"{}\"", op->name, attrs[0].first);
    }
  } catch (Error& error) {
    throw located(std::move(error), *op, inputs, sources);
  }
  return add_node(op, std::move(typed), std::move(inputs), outputs, std::move(sources), before, {});
}

void Graph::set_input(Node* node, size_t index, Value* value) {
  OPFUSE_CHECK(index < node->inputs.size(), "input {} of {}", index, node->name());
  if (node->inputs[index] != nullptr) remove_use(node->inputs[index], {node, index});
  node->inputs[index] = value;
  if (value != nullptr) value->uses.push_back({node, index});
}

bool Graph::can_replace(const Value* from, const Value* to) const {
  if (!is_output(from) || from->name.empty()) return true;
  return !is_output(to) && std::find(inputs_.begin(), inputs_.end(), to) == inputs_.end();
}

void Graph::replace_uses(Value* from, Value* to) {
  if (from == to) return;
  OPFUSE_CHECK(can_replace(from, to), "output \"{}\" cannot be replaced by \"{}\", which has a name of its own",
               from->name, to->name);
  for (const Use& use : std::exchange(from->uses, {})) {
    use.node->inputs[use.index] = to;
    to->uses.push_back(use);
  }
  if (!is_output(from)) return;
  std::replace(outputs_.begin(), outputs_.end(), from, to);
  to->as_output += std::exchange(from->as_output, 0);
  if (!from->name.empty()) to->name = std::exchange(from->name, {});
}

void Graph::erase(Node* node) { erase(std::vector<Node*>{node}); }

void Graph::erase(const std::vector<Node*>& nodes) {
  for (Node* node : nodes) {
    for (size_t i = 0; i < node->inputs.size(); ++i) set_input(node, i, nullptr);
  }
  std::vector<int> value_ids, node_ids;
  for (const Node* node : nodes) {
    node_ids.push_back(node->id);
    for (const Value* v : node->outputs) {
      OPFUSE_CHECK(read_count(v) == 0, "{} is erased but its result is read", node->name());
      value_ids.push_back(v->id);
    }
  }
  erase_nodes(order_, nodes);
  erase_ids(values_, std::move(value_ids));
  erase_ids(nodes_, std::move(node_ids));
}

size_t Graph::remove_dead_nodes() {
  std::unordered_set<const Node*> dead;
  const std::unordered_set<const Value*> kept(outputs_.begin(), outputs_.end());
  for (size_t i = order_.size(); i-- > 0;) {
    Node* node = order_[i];
    const bool read = std::any_of(node->outputs.begin(), node->outputs.end(),
                                  [&](const Value* v) { return !v->uses.empty() || kept.contains(v); });
    if (read) continue;
    for (size_t k = 0; k < node->inputs.size(); ++k) set_input(node, k, nullptr);
    dead.insert(node);
  }
  std::erase_if(order_, [&](const Node* n) { return dead.contains(n); });
  std::erase_if(values_, [&](const auto& v) {
    return (v->producer != nullptr && dead.contains(v->producer)) ||
           (v->is_constant() && v->uses.empty() && !kept.contains(v.get()));
  });
  std::erase_if(nodes_, [&](const auto& n) { return dead.contains(n.get()); });
  return dead.size();
}

void Graph::sort_topologically() {
  std::unordered_map<const Node*, size_t> place, waiting;
  for (size_t i = 0; i < order_.size(); ++i) place[order_[i]] = i;
  std::set<std::pair<size_t, Node*>> ready;  // the place is unique, so addresses never decide
  for (Node* node : order_) {
    size_t count = 0;
    for (const Value* v : node->inputs) count += v != nullptr && v->producer != nullptr;
    waiting[node] = count;
    if (count == 0) ready.insert({place[node], node});
  }
  std::vector<Node*> sorted;
  while (!ready.empty()) {
    Node* node = ready.begin()->second;
    ready.erase(ready.begin());
    sorted.push_back(node);
    for (const Value* v : node->outputs) {
      for (const Use& use : v->uses) {
        if (--waiting[use.node] == 0) ready.insert({place[use.node], use.node});
      }
    }
  }
  if (sorted.size() != order_.size()) {
    for (const Node* node : order_) {
      if (waiting[node] > 0) throw fail(E::cyclic_graph, "the nodes of the graph form a cycle").node(node->name());
    }
  }
  order_ = std::move(sorted);
}

// ---- copies

Graph Graph::clone() const {
  Graph copy;
  copy.name = name;
  copy.model_file = model_file;
  copy.metadata = metadata;
  std::vector<Value*> value_of(static_cast<size_t>(next_value_));  // by id
  std::vector<Node*> node_of(static_cast<size_t>(next_node_));
  const auto copied = [&](const Node* n) { return node_of[static_cast<size_t>(n->id)]; };
  copy.values_.reserve(values_.size());
  for (const auto& v : values_) {
    copy.values_.push_back(std::make_unique<Value>(*v));
    value_of[static_cast<size_t>(v->id)] = copy.values_.back().get();
  }
  auto mapped = [&](const std::vector<Value*>& list) {
    std::vector<Value*> out;
    out.reserve(list.size());
    for (const Value* v : list) out.push_back(v == nullptr ? nullptr : value_of[static_cast<size_t>(v->id)]);
    return out;
  };
  copy.nodes_.reserve(nodes_.size());
  for (const auto& n : nodes_) {
    copy.nodes_.push_back(std::make_unique<Node>());
    Node* made = node_of[static_cast<size_t>(n->id)] = copy.nodes_.back().get();
    made->id = n->id;
    made->op = n->op;
    made->inputs = mapped(n->inputs);
    made->outputs = mapped(n->outputs);
    made->sources = n->sources;
    if (n->body) made->body = std::make_unique<Graph>(n->body->clone());
    made->label = n->label;
    made->pattern = n->pattern;
    made->attrs_ = n->attrs_;
  }
  for (const auto& v : copy.values_) {
    if (v->producer != nullptr) v->producer = copied(v->producer);
    for (Use& use : v->uses) use.node = copied(use.node);
  }
  copy.order_.reserve(order_.size());
  for (const Node* n : order_) copy.order_.push_back(copied(n));
  copy.inputs_ = mapped(inputs_);
  copy.outputs_ = mapped(outputs_);
  copy.next_value_ = next_value_;
  copy.next_node_ = next_node_;
  return copy;
}

}  // namespace opfuse
