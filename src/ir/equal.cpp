// Structural hashing and equality. Names, ids, source names and the order of independent nodes do not
// count; operators, attributes, types, wiring, constants, bodies and patterns do.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.hpp"
#include "ir/graph.hpp"

namespace opfuse {

namespace {

std::string signature(const Node& node) {
  std::string out = node.op->name;
  if (node.op->has_body) out += node.op == composite_op() ? node.label : node.pattern;
  for (const auto& [name, value] : node.attr_map()) out += fmt::format("|{}={}", name, text_of(value));
  return out;
}

/// Walks two graphs from their outputs, building a one-to-one mapping of values and nodes.
class Matching {
 public:
  Matching(const Graph& a, const Graph& b, std::string& why) : a_(a), b_(b), why_(why) {}

  bool run() {
    if (a_.inputs().size() != b_.inputs().size())
      return differ("{} inputs against {}", a_.inputs().size(), b_.inputs().size());
    if (a_.outputs().size() != b_.outputs().size())
      return differ("{} outputs against {}", a_.outputs().size(), b_.outputs().size());
    if (a_.nodes().size() != b_.nodes().size())
      return differ("{} nodes against {}", a_.nodes().size(), b_.nodes().size());
    for (size_t i = 0; i < a_.inputs().size(); ++i) {
      if (!pair(a_.inputs()[i], b_.inputs()[i])) return false;
    }
    for (size_t i = 0; i < a_.outputs().size(); ++i) {
      if (!pair(a_.outputs()[i], b_.outputs()[i])) return false;
    }
    return drain() && dead_nodes();
  }

 private:
  const Graph& a_;
  const Graph& b_;
  std::string& why_;
  std::unordered_map<const Value*, const Value*> forward_, backward_;
  std::unordered_map<const Node*, const Node*> node_of_;
  std::vector<std::pair<const Value*, const Value*>> work_;

  template <class... Args>
  bool differ(fmt::format_string<Args...> format, Args&&... args) {
    why_ = fmt::format(format, std::forward<Args>(args)...);
    return false;
  }
  static std::string label(const Value* v) { return v->name.empty() ? fmt::format("%{}", v->id) : "%" + v->name; }

  bool pair(const Value* a, const Value* b) {
    if ((a == nullptr) != (b == nullptr)) return differ("an operand is absent on one side only");
    if (a == nullptr) return true;
    auto [at, fresh] = forward_.emplace(a, b);
    auto [back, fresh_back] = backward_.emplace(b, a);
    if (at->second != b || back->second != a) return differ("{} and {} are wired differently", label(a), label(b));
    if (fresh && fresh_back) work_.emplace_back(a, b);
    return true;
  }

  bool drain() {
    while (!work_.empty()) {
      auto [a, b] = work_.back();
      work_.pop_back();
      if (!same_value(*a, *b)) return false;
    }
    return true;
  }

  bool same_value(const Value& a, const Value& b) {
    if (!(a.type == b.type)) return differ("{} is {}, {} is {}", label(&a), a.type.text(), label(&b), b.type.text());
    if (a.is_constant() != b.is_constant()) return differ("only one of {} and {} is constant", label(&a), label(&b));
    if (a.is_constant())
      return a.constant->same_bits(*b.constant) ||
             differ("constants {} and {} have different values", label(&a), label(&b));
    if ((a.producer == nullptr) != (b.producer == nullptr))
      return differ("only one of {} and {} is a graph input", label(&a), label(&b));
    if (a.producer == nullptr) {
      const auto index = [](const Graph& g, const Value* v) {
        return std::find(g.inputs().begin(), g.inputs().end(), v) - g.inputs().begin();
      };
      return index(a_, &a) == index(b_, &b) || differ("{} and {} are different graph inputs", label(&a), label(&b));
    }
    if (a.result != b.result)
      return differ("{} is result {}, {} is result {}", label(&a), a.result, label(&b), b.result);
    auto [at, fresh] = node_of_.emplace(a.producer, b.producer);
    if (at->second != b.producer) return differ("{} and {} come from different nodes", label(&a), label(&b));
    return !fresh || same_node(*a.producer, *b.producer);
  }

  bool same_node(const Node& a, const Node& b) {
    if (signature(a) != signature(b))
      return differ("node {} is {}, node {} is {}", a.name(), signature(a), b.name(), signature(b));
    if (a.inputs.size() != b.inputs.size() || a.outputs.size() != b.outputs.size()) {
      return differ("nodes {} and {} have different numbers of operands or results", a.name(), b.name());
    }
    if ((a.body == nullptr) != (b.body == nullptr))
      return differ("only one of {} and {} has a body", a.name(), b.name());
    if (a.body) {
      std::string inner;
      if (!Matching(*a.body, *b.body, inner).run())
        return differ("in the bodies of {} and {}: {}", a.name(), b.name(), inner);
    }
    for (size_t i = 0; i < a.inputs.size(); ++i) {
      if (!pair(a.inputs[i], b.inputs[i])) return false;
    }
    for (size_t i = 0; i < a.outputs.size(); ++i) {
      if (!pair(a.outputs[i], b.outputs[i])) return false;
    }
    return true;
  }

  /// Nodes no output needs are compared as a bag of hashes.
  bool dead_nodes() {
    if (node_of_.size() == a_.nodes().size()) return true;
    return structural_hash(a_) == structural_hash(b_) || differ("nodes that no output needs differ");
  }
};

void append(std::string& key, const Hash128& h) { key.append(reinterpret_cast<const char*>(&h), sizeof h); }

}  // namespace

Hash128 content_hash(const Tensor& tensor) {
  std::string key = tensor.type().text();
  append(key, hash_bytes(tensor.data(), tensor.bytes()));
  return hash_text(key);
}

bool equal(const Graph& a, const Graph& b, std::string* why) {
  std::string reason;
  const bool same = Matching(a, b, reason).run();
  if (why != nullptr) *why = std::move(reason);
  return same;
}

Hash128 structural_hash(const Graph& graph, bool with_constants) {
  std::unordered_map<const Value*, Hash128> hash_of;
  std::string whole;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Hash128 h = hash_text(fmt::format("input {} {}", i, graph.inputs()[i]->type.text()));
    hash_of[graph.inputs()[i]] = h;
    append(whole, h);
  }
  for (const Value* v : graph.constants()) {
    hash_of[v] = hash_text("constant " + (with_constants ? content_hash(*v->constant).hex() : v->type.text()));
  }
  std::vector<Hash128> nodes;
  TensorType type;  // of the value before: neighbours are alike, and texts are most of the work
  std::string type_text = type.text();
  for (const Node* node : graph.nodes()) {
    std::string key = signature(*node);
    for (const Value* v : node->inputs) append(key, v == nullptr ? Hash128{} : hash_of.at(v));
    if (node->body) append(key, structural_hash(*node->body, with_constants));
    for (const Value* v : node->outputs) {
      if (!(v->type == type)) type = v->type, type_text = type.text();
      key.append("|").append(type_text);
    }
    nodes.push_back(hash_text(key));
    const std::string name = nodes.back().hex();
    for (size_t i = 0; i < node->outputs.size(); ++i)
      hash_of[node->outputs[i]] = hash_text(name + " " + std::to_string(i));
  }
  for (const Value* v : graph.outputs()) append(whole, hash_of.at(v));
  std::sort(nodes.begin(), nodes.end());  // a bag: duplicates count, order does not
  for (const Hash128& h : nodes) append(whole, h);
  return hash_text(whole);
}

}  // namespace opfuse
