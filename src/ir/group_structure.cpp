// The structure of a group as words, hashed:
//
//     operands: type, [elements]   nodes: operator, attributes, operands by number, types of results, [body]   results
//
// Elements count where they decide what a region is: integers, numbers, and whatever stands next to codes, whose scales
// may be equal or not. Weights of products and vectors of elementwise operators are read at run time or folded into
// other constants; their elements decide nothing.
#include "ir/group_structure.hpp"

#include <algorithm>

namespace opfuse {
namespace {

constexpr size_t kMostBytes = 64 << 10;  // of elements; reading more costs as much as lowering the group again

bool is_coded(const Graph& body) {
  return std::any_of(body.nodes().begin(), body.nodes().end(), [](const Node* node) {
    const std::string& name = node->op->name;
    return name.find("quantize") != std::string::npos || name.find("integer") != std::string::npos ||
           (node->body && is_coded(*node->body));
  });
}

/// Readers that take any elements alike.
bool takes_any_elements(const Value& inner) {
  return std::all_of(inner.uses.begin(), inner.uses.end(), [](const Use& use) {
    if (use.node->body) return takes_any_elements(*use.node->body->inputs()[use.index]);
    return use.node->op->kind == OpKind::elementwise || use.node->op->kind == OpKind::contraction;
  });
}

}  // namespace

class StructureWriter {
 public:
  StructureWriter(GroupStructure& kept, const Node& group) : kept_(kept), coded_(is_coded(*group.body)) {}

  bool write(const Node& group) {
    word(reinterpret_cast<uintptr_t>(group.op));
    text(group.pattern);
    for (const Value* operand : group.inputs) {
      if (!operand || operand->producer) return false;
      word(number_of(operand));  // one value may be two operands
    }
    for (const Value* result : group.outputs)
      if (!result->uses.empty()) return false;
    return body(*group.body, group.inputs);
  }
  Hash128 hash() const { return hash_bytes(words_.data(), words_.size() * sizeof(uint64_t)); }

 private:
  GroupStructure& kept_;
  const bool coded_;
  std::vector<uint64_t> words_;
  std::unordered_map<const Value*, uint64_t> numbers_;

  void word(uint64_t w) { words_.push_back(w); }
  void hashed(const Hash128& h) { word(h.high), word(h.low); }
  void text(std::string_view t) { hashed(hash_text(t)); }
  uint64_t number_of(const Value* v) { return v ? numbers_.emplace(v, numbers_.size() + 1).first->second : 0; }

  void type(const TensorType& t) {
    word(static_cast<uint64_t>(t.dtype));
    word(t.shape.ranked ? t.shape.rank() : ~uint64_t{0});
    for (const Dim& d : t.shape.dims) {
      word(d.is_constant());
      d.is_constant() ? word(static_cast<uint64_t>(d.value())) : text(d.text());
    }
  }

  bool elements(const Tensor& tensor) {
    if (tensor.bytes() > kMostBytes) return false;
    hashed(hash_bytes(tensor.data(), tensor.bytes()));
    return true;
  }

  /// `operands`: what its inputs are outside.
  bool body(const Graph& graph, const std::vector<Value*>& operands) {
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      const Value* operand = operands[i];
      word(number_of(graph.inputs()[i]));
      type(graph.inputs()[i]->type);
      word(operand ? 1 + operand->is_constant() : 0);
      if (!operand || !operand->is_constant()) continue;
      const Tensor& tensor = *operand->constant;
      const bool any =
          !coded_ && is_float(tensor.dtype()) && tensor.elements() > 1 && takes_any_elements(*graph.inputs()[i]);
      word(any);
      if (!any && !elements(tensor)) return false;
    }
    const std::vector<Value*> constants = graph.constants();
    word(constants.size());
    for (const Value* c : constants) {
      word(number_of(c));
      type(c->type);
      if (!elements(*c->constant)) return false;
    }
    word(graph.nodes().size());
    for (const Node* node : graph.nodes())
      if (!inner(*node)) return false;
    for (const Value* result : graph.outputs()) word(number_of(result));
    return true;
  }

  bool inner(const Node& node) {
    if (node.attrs_ && !node.op->attrs_to_map) return false;
    word(reinterpret_cast<uintptr_t>(node.op));
    if (node.attrs_) hashed(kept_.attributes_of(node));
    word(node.inputs.size());
    for (const Value* v : node.inputs) word(number_of(v));
    word(node.outputs.size());
    for (const Value* v : node.outputs) {
      word(number_of(v));
      type(v->type);
    }
    if (!node.body) return true;
    text(node.label);
    text(node.pattern);
    return body(*node.body, node.inputs);
  }
};

Hash128 GroupStructure::attributes_of(const Node& node) {
  const auto [at, fresh] = told_.try_emplace(node.attrs());
  if (fresh) {
    std::string all;
    for (const auto& [name, value] : node.attr_map()) all += name + "=" + text_of(value) + "|";
    at->second = {node.attrs_, hash_text(all)};
  }
  return at->second.text;
}

std::optional<Hash128> GroupStructure::of(const Node& group) {
  if (!group.body) return std::nullopt;
  StructureWriter writer(*this, group);
  if (!writer.write(group)) return std::nullopt;
  return writer.hash();
}

}  // namespace opfuse
