// Inlining of model-local functions, before anything is a Graph:
//     y = f(x) {k = 3},   f(a) { t = g(a) {n = @k};  b = h(t) }   ->   f/t = g(x) {n = 3};  y = h(f/t)
// Functions may call functions. What a call expands to is added up before anything is inlined, each function once, so
// that a small file of doubling calls is refused at once.
#include "onnx/flatten_functions.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/fail.hpp"
#include "base/limits.hpp"
#include "onnx/call_record.hpp"

namespace opfuse::onnx {
namespace {

using FunctionKey = std::tuple<std::string, Bytes, Bytes>;

FunctionKey key_of(Bytes domain, Bytes name, Bytes overload) {
  return {is_default_domain(domain) ? std::string() : std::string(domain), name, overload};
}

bool holds_graphs(const FunctionProto& function) {
  for (const NodeProto& node : function.nodes)
    for (const Attribute& a : node.attributes)
      if (!a.graph.empty() || !a.graphs.empty()) return true;
  return false;
}

class Flattener {
 public:
  Flattener(const ModelProto& model, const Limits& limits, Problems* problems)
      : model_(model), limits_(limits), problems_(problems) {
    for (const FunctionProto& function : model.functions)
      attempt([&] {
        if (!functions_.emplace(key_of(function.domain, function.name, function.overload), &function).second)
          throw fail(E::duplicate_name, "the model defines function \"{}\" twice", function.name);
      });
    const GraphProto& graph = model.graph;
    for (const auto* list : {&graph.inputs, &graph.outputs})
      for (const ValueInfo& info : *list) taken_.insert(info.name);
    for (const TensorProto& tensor : graph.initializers) taken_.insert(tensor.name);
    for (const NodeProto& node : graph.nodes) taken_.insert(node.outputs.begin(), node.outputs.end());
  }

  FlatNodes run() {
    check_size();
    for (const NodeProto& node : model_.graph.nodes) {
      const size_t before = result_.nodes.size();
      if (!refused_.contains(&node) && attempt([&] { add(node, model_.opsets); })) continue;
      result_.nodes.resize(before);  // inlined in part
      result_.nodes.push_back({node, opset_version(model_.opsets, node.domain), true});
    }
    return std::move(result_);
  }

 private:
  struct Known {};  ///< thrown for a function whose problem is recorded

  /// False when `step` threw, which is recorded where problems are.
  template <class Step>
  bool attempt(Step&& step) {
    if (!problems_) return step(), true;
    bool known = false;
    const bool done = problems_->attempt([&] {
      try {
        step();
      } catch (const Known&) {
        known = true;
      }
    });
    if (done && !known) return true;
    for (const auto& [function, extent] : extents_)
      if (extent.nodes == 0) broken_.insert(function);
    return false;
  }

  /// What a call is inlined as; null for other nodes, and for functions that keep their calls.
  const FunctionProto* function_of(const NodeProto& node) const {
    const auto found = functions_.find(key_of(node.domain, node.op_type, node.overload));
    return found == functions_.end() || holds_graphs(*found->second) ? nullptr : found->second;
  }

  void check_size() {
    const auto limit = static_cast<size_t>(limits_.inlined_nodes);
    size_t inlined = 0;
    for (const NodeProto& node : model_.graph.nodes) {
      const FunctionProto* function = function_of(node);
      if (!function) continue;
      const bool fits = attempt([&] {
        if (inlined <= limit) inlined += extent_of(*function, node, 0, limit).nodes;
        if (inlined <= limit) return;
        if (std::exchange(too_large_, true)) throw Known{};
        throw fail(E::malformed_model, "inlining the calls of the model's functions gives more than {} nodes", limit)
            .node(std::string(node.name))
            .hint("where this is meant, " + how_to_raise("inlined_nodes"));
      });
      if (!fits) refused_.insert(&node);
    }
  }

  /// What a call of a function expands to; beyond the limits it is not counted on.
  struct Extent {
    size_t nodes = 0;   ///< and calls, the call itself included; 0: being counted
    size_t height = 0;  ///< of nested calls
  };

  Extent extent_of(const FunctionProto& function, const NodeProto& call, size_t depth, size_t limit) {
    if (broken_.contains(&function)) throw Known{};
    const auto [entry, fresh] = extents_.try_emplace(&function);
    Extent extent = entry->second;
    if (!fresh && extent.nodes == 0)
      throw fail(E::malformed_model, "function \"{}\" calls itself", function.name).node(std::string(call.name));
    if (const auto most = static_cast<size_t>(limits_.nested_functions); depth + extent.height >= most)
      throw fail(E::malformed_model, "functions call each other more than {} deep, here \"{}\"", most, function.name)
          .node(std::string(call.name))
          .hint("where this is meant, " + how_to_raise("nested_functions"));
    if (!fresh) return extent;
    extent = {1, 1};
    for (const NodeProto& node : function.nodes) {
      const FunctionProto* inner = function_of(node);
      const Extent part = inner ? extent_of(*inner, node, depth + 1, limit) : Extent{1, 0};
      extent = {extent.nodes + part.nodes, std::max(extent.height, part.height + 1)};
      if (extent.nodes > limit) break;
    }
    return extents_[&function] = extent;
  }

  void add(const NodeProto& node, const std::vector<OperatorSet>& opsets) {
    if (const FunctionProto* function = function_of(node)) return inline_call(node, *function);
    result_.calls_left = result_.calls_left || functions_.contains(key_of(node.domain, node.op_type, node.overload));
    result_.nodes.push_back({node, opset_version(opsets, node.domain)});
  }

  void inline_call(const NodeProto& call, const FunctionProto& function) {
    if (call.inputs.size() > function.inputs.size() || call.outputs.size() > function.outputs.size())
      throw fail(E::arity_mismatch, "function \"{}\" has {} inputs and {} outputs but is called with {} and {}",
                 function.name, function.inputs.size(), function.outputs.size(), call.inputs.size(),
                 call.outputs.size())
          .node(std::string(call.name))
          .op(std::string(call.op_type));
    const std::string prefix = prefix_of(call);
    std::map<Bytes, Bytes> names;
    for (size_t i = 0; i < function.inputs.size(); ++i)
      names[function.inputs[i]] = i < call.inputs.size() ? call.inputs[i] : Bytes();
    for (size_t i = 0; i < call.outputs.size(); ++i) bind_output(function, i, call, names);
    const std::optional<CallRecord> record = record_of(call, function);
    for (size_t i = 0; i < function.nodes.size(); ++i) {
      const NodeProto& inner = function.nodes[i];
      if (record && restore_results(inner, record->values[i], names)) continue;
      NodeProto node = renamed(inner, prefix, names);
      if (record && !record->nodes[i].empty()) node.name = keep(record->nodes[i]);
      if (record) node.unknown += record->fields[i];
      substitute_attributes(node, call, function);
      add(node, function.opsets);
    }
    copy_through(call, function, names);
  }

  /// What the names were before opfuse made the function (call_record.hpp); nothing for functions of others.
  static std::optional<CallRecord> record_of(const NodeProto& call, const FunctionProto& function) {
    if (call.domain != kFunctionDomain) return std::nullopt;
    std::optional<CallRecord> record = decode_record(call.unknown);
    if (record && record->nodes.size() != function.nodes.size()) return std::nullopt;
    for (size_t i = 0; record && i < function.nodes.size(); ++i)
      if (record->values[i].size() != function.nodes[i].outputs.size()) return std::nullopt;
    return record;
  }

  /// Results of `inner` get their old names where those are free. True when the node is a Constant that another call
  /// brought back already under that name.
  bool restore_results(const NodeProto& inner, const std::vector<std::string>& origins, std::map<Bytes, Bytes>& names) {
    for (size_t i = 0; i < origins.size(); ++i) {
      if (origins[i].empty() || names.contains(inner.outputs[i])) continue;
      const bool constant = inner.op_type == "Constant" && inner.attributes.size() == 1;
      const auto same = constant ? constants_.find(origins[i]) : constants_.end();
      if (same != constants_.end() && same->second.second == inner.attributes[0].raw) {
        names[inner.outputs[i]] = same->second.first;
        return true;
      }
      const Bytes name = keep(origins[i]);
      if (!taken_.insert(name).second) continue;
      names[inner.outputs[i]] = name;
      if (constant) constants_[origins[i]] = {name, inner.attributes[0].raw};
    }
    return false;
  }

  /// A function output that is one of its inputs keeps the input's name; `copy_through` adds an Identity.
  static void bind_output(const FunctionProto& function, size_t i, const NodeProto& call,
                          std::map<Bytes, Bytes>& names) {
    if (!call.outputs[i].empty()) names.emplace(function.outputs[i], call.outputs[i]);
  }
  void copy_through(const NodeProto& call, const FunctionProto& function, const std::map<Bytes, Bytes>& names) {
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const auto bound = names.find(function.outputs[i]);
      if (call.outputs[i].empty() || bound == names.end() || bound->second == call.outputs[i]) continue;
      NodeProto identity;
      identity.op_type = "Identity";
      identity.inputs = {bound->second};
      identity.outputs = {call.outputs[i]};
      result_.nodes.push_back({identity, opset_version(model_.opsets, "")});
    }
  }

  std::string prefix_of(const NodeProto& call) {
    std::string prefix(call.name);
    for (size_t i = 0; prefix.empty() && i < call.outputs.size(); ++i) prefix = call.outputs[i];
    if (prefix.empty()) prefix = call.op_type;
    std::string unique = prefix;
    for (int n = 2; !prefixes_.insert(unique).second; ++n) unique = fmt::format("{}_{}", prefix, n);
    return unique + "/";
  }

  Bytes keep(std::string text) { return result_.names.emplace_back(std::move(text)); }

  NodeProto renamed(const NodeProto& inner, const std::string& prefix, std::map<Bytes, Bytes>& names) {
    const auto rename = [&](Bytes& name) {
      if (name.empty()) return;
      auto [entry, added] = names.try_emplace(name);
      if (added) entry->second = keep(prefix + std::string(name));
      name = entry->second;
    };
    NodeProto node = inner;
    for (Bytes& name : node.inputs) rename(name);
    for (Bytes& name : node.outputs) rename(name);
    if (!node.name.empty()) node.name = keep(prefix + std::string(node.name));
    return node;
  }

  void substitute_attributes(NodeProto& node, const NodeProto& call, const FunctionProto& function) {
    std::vector<Attribute> kept;
    for (const Attribute& attribute : node.attributes) {
      if (attribute.reference.empty()) {
        kept.push_back(attribute);
        continue;
      }
      const Attribute* value = find(call.attributes, attribute.reference);
      if (!value) value = find(function.attribute_defaults, attribute.reference);
      if (!value) continue;  // the caller leaves it out: the inner node's own default applies
      Attribute copy = *value;
      copy.raw = renamed_attribute(*value, attribute.name, result_.names.emplace_back());
      copy.name = attribute.name;
      kept.push_back(copy);
    }
    node.attributes = std::move(kept);
  }

  static const Attribute* find(const std::vector<Attribute>& attributes, Bytes name) {
    for (const Attribute& a : attributes)
      if (a.name == name) return &a;
    return nullptr;
  }

  const ModelProto& model_;
  const Limits& limits_;
  Problems* const problems_;
  std::set<const FunctionProto*> broken_;  // their problem is recorded
  std::set<const NodeProto*> refused_;     // calls
  bool too_large_ = false;
  std::map<FunctionKey, const FunctionProto*> functions_;
  std::set<std::string> prefixes_;
  std::set<Bytes> taken_;                                     // names of the main graph, and of restored tensors
  std::map<std::string, std::pair<Bytes, Bytes>> constants_;  // restored: name -> name, attribute
  std::map<const FunctionProto*, Extent> extents_;            // iterated to fill a set
  FlatNodes result_;
};

}  // namespace

int64_t opset_version(const std::vector<OperatorSet>& opsets, Bytes domain) {
  for (const OperatorSet& opset : opsets)
    if (opset.domain == domain || (is_default_domain(opset.domain) && is_default_domain(domain))) return opset.version;
  return 0;
}

FlatNodes flatten_functions(const ModelProto& model, const Limits& limits, Problems* problems) {
  return Flattener(model, limits, problems).run();
}

}  // namespace opfuse::onnx
