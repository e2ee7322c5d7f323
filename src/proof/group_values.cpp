// Programs know values without names by their number in the graph they were lowered from, so these get names before
// bodies take their nodes' places; values inside bodies without names are nobody's. Values are computed backwards from
// the one that is asked for, down to what is known. Chains may be long: a list of open nodes, no recursion.
#include "proof/group_values.hpp"

#include "base/fail.hpp"
#include "ir/outline.hpp"
#include "ir/value_name.hpp"
#include "match/qdq.hpp"
#include "ops/is_a.hpp"
#include "ops/quantize.hpp"

namespace opfuse {

GroupValues::GroupValues(const Graph& fused, SymbolValues symbols)
    : graph_(fused.clone()), symbols_(std::move(symbols)) {
  const auto name = [](const std::vector<Value*>& values, const std::vector<Value*>& originals) {
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i]) values[i]->name = value_name(*originals[i]);
  };
  name(graph_.inputs(), fused.inputs());
  for (size_t i = 0; i < graph_.nodes().size(); ++i) name(graph_.nodes()[i]->outputs, fused.nodes()[i]->outputs);
  expand_bodies(graph_);
  const auto know = [&](const Value* v) {
    if (v && !v->name.empty()) by_name_[v->name] = v;
  };
  for (const Value* v : graph_.inputs()) know(v);
  for (const Value* v : graph_.constants()) know(v);
  for (const Node* node : graph_.nodes())
    for (const Value* v : node->outputs) know(v);
}

DType GroupValues::dtype_of(const std::string& name) const { return by_name_.at(name)->type.dtype; }

const Node& GroupValues::producer_of(const std::string& name) const {
  const Node* node = by_name_.at(name)->producer;
  OPFUSE_CHECK(node, "no node computes '{}'", name);
  return *node;
}

struct GroupValues::Evaluation {
  const GroupValues& owner;
  const Known& known;
  const std::set<std::string>* leaves;  ///< null: all of `known`
  std::map<const Value*, Tensor> done = {};

  bool is_leaf(const Value& v) const {
    return !v.producer || (!v.name.empty() && known.contains(v.name) && (!leaves || leaves->contains(v.name)));
  }

  void read_leaf(const Value& v) {
    OPFUSE_CHECK(v.constant || known.contains(v.name), "value '{}' was not computed before it is read", v.name);
    const Tensor& given = v.constant ? *v.constant : known.at(v.name);
    const bool real = is_float(given.dtype()) && given.dtype() != DType::f64;
    done[&v] = real ? given.cast(DType::f64) : given;
  }

  void run(const Node& node) {
    std::vector<const Tensor*> operands;
    for (const Value* input : node.inputs) operands.push_back(input ? &done.at(input) : nullptr);
    InterpretOptions options;
    options.symbols = owner.symbols_;
    std::vector<Tensor> results = interpret_node(node, operands, options);
    for (size_t i = 0; i < results.size(); ++i)
      done[node.outputs[i]] = is_folded(node, results[i])
                                  ? results[i].cast(node.outputs[i]->type.dtype).cast(DType::f64)
                                  : std::move(results[i]);
  }

  /// Weights of 16 bits that codes stand for are constants of that type in a program (passes/fold_dequantized.hpp), as
  /// is a single number, the 1 of a GELU (region/lower_quantize.cpp).
  static bool is_folded(const Node& node, const Tensor& result) {
    const DType type = node.outputs[0]->type.dtype;
    const bool number = type == DType::f32 && result.elements() == 1;
    return is_a<DequantizeLinear>(node) && (type == DType::f16 || type == DType::bf16 || number) &&
           is_constant_or_dequantized(node.output());
  }

  const Tensor& operator()(const Value& wanted) {
    std::vector<const Value*> open = {&wanted};
    while (!open.empty()) {
      const Value& v = *open.back();
      if (done.contains(&v)) {
        open.pop_back();
      } else if (is_leaf(v)) {
        read_leaf(v);
      } else {
        const size_t before = open.size();
        for (const Value* input : v.producer->inputs)
          if (input && !done.contains(input)) open.push_back(input);
        if (open.size() == before) run(*v.producer);
      }
    }
    return done.at(&wanted);
  }
};

Tensor GroupValues::value(const std::string& name, const Known& known) const {
  return value(*by_name_.at(name), known);
}

Tensor GroupValues::value(const Value& wanted, const Known& known) const {
  Evaluation evaluate{*this, known, nullptr};
  return evaluate(wanted);
}

GroupValues::Known GroupValues::all(const Known& inputs) const {
  Evaluation evaluate{*this, inputs, nullptr};
  Known values;
  for (const auto& [name, value] : by_name_) values[name] = evaluate(*value);
  return values;
}

std::vector<Tensor> GroupValues::results(const std::vector<std::string>& names, const Known& known,
                                         const std::set<std::string>& leaves) const {
  Evaluation evaluate{*this, known, &leaves};
  std::vector<Tensor> all;
  for (const std::string& name : names) all.push_back(evaluate(*by_name_.at(name)));
  return all;
}

}  // namespace opfuse
