// Building and editing the graph. Invariants kept here, checked by verify.cpp:
//   order_ is a topological order; every reading is in its value's `uses`; a value has one producer;
//   names of values are unique; values_ is in id order.
#include "ir/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
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

/// Removes what lies at these places, by moving what is between them.
template <class T>
void erase_at(std::vector<T>& list, std::vector<size_t> places) {
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  if (places.empty()) return;
  const auto at = [&](size_t place) { return list.begin() + static_cast<std::ptrdiff_t>(place); };
  auto to = at(places.front());
  for (size_t i = 0; i < places.size(); ++i)
    to = std::move(at(places[i] + 1), i + 1 < places.size() ? at(places[i + 1]) : list.end(), to);
  list.erase(to, list.end());
}

/// Removes what has these ids; `owned` is in the order of ids.
template <class T>
void erase_ids(std::vector<std::unique_ptr<T>>& owned, const std::vector<int>& ids) {
  std::vector<size_t> places;
  for (const int id : ids) {
    const auto at = std::lower_bound(owned.begin(), owned.end(), id,
                                     [](const auto& item, int wanted) { return item->id < wanted; });
    places.push_back(static_cast<size_t>(at - owned.begin()));
  }
  erase_at(owned, std::move(places));
}

/// Removes nodes from the order. As a rule they come in it and lie close together; others are looked up in a set.
void erase_nodes(std::vector<Node*>& order, const std::vector<Node*>& nodes) {
  std::vector<size_t> places;
  auto at = order.begin();
  for (const Node* node : nodes) {
    at = std::find(at, order.end(), node);
    if (at == order.end()) break;
    places.push_back(static_cast<size_t>(at - order.begin()));
  }
  if (at != order.end()) return erase_at(order, std::move(places));
  const std::unordered_set<const Node*> gone(nodes.begin(), nodes.end());
  const size_t erased = std::erase_if(order, [&](const Node* n) { return gone.contains(n); });
  OPFUSE_CHECK(erased == gone.size(), "{} of {} nodes to erase are not in the graph", gone.size() - erased,
               gone.size());
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
  erase_ids(values_, value_ids);
  erase_ids(nodes_, node_ids);
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

/// Only the stretch from the first node that stands before a producer of its own to the last such producer changes.
/// What is in front of it depends on nothing in it, and it on nothing behind it.
void Graph::sort_topologically() {
  std::vector<size_t> place(static_cast<size_t>(next_node_));  // by id
  const auto place_of = [&](const Node* n) -> size_t& { return place[static_cast<size_t>(n->id)]; };
  for (size_t i = 0; i < order_.size(); ++i) place_of(order_[i]) = i;
  size_t first = order_.size(), end = 0;
  for (size_t i = 0; i < order_.size(); ++i) {
    for (const Value* v : order_[i]->inputs) {
      if (v == nullptr || v->producer == nullptr || place_of(v->producer) < i) continue;
      first = std::min(first, i);
      end = std::max(end, place_of(v->producer) + 1);
    }
  }
  if (first >= end) return;
  std::vector<size_t> waiting(end - first);
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = first; i < end; ++i) {
    for (const Value* v : order_[i]->inputs)
      waiting[i - first] += v != nullptr && v->producer != nullptr && place_of(v->producer) >= first;
    if (waiting[i - first] == 0) ready.push(i);
  }
  std::vector<Node*> sorted;
  while (!ready.empty()) {
    Node* node = order_[ready.top()];
    ready.pop();
    sorted.push_back(node);
    for (const Value* v : node->outputs) {
      for (const Use& use : v->uses) {
        const size_t reader = place_of(use.node);
        if (reader < end && --waiting[reader - first] == 0) ready.push(reader);
      }
    }
  }
  if (sorted.size() != end - first) {
    for (size_t i = first; i < end; ++i) {
      if (waiting[i - first] > 0)
        throw fail(E::cyclic_graph, "the nodes of the graph form a cycle").node(order_[i]->name());
    }
  }
  std::copy(sorted.begin(), sorted.end(), order_.begin() + static_cast<std::ptrdiff_t>(first));
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
