// One line a statement, values numbered in the order in which they appear:
//
//     opfuse-piece 1
//     pattern TileLinear
//     name NpuTileLinear__fc1
//     input %0 f32[8,768]              operands in their order; `constant` where the value never changes
//     constant %1 f32[768,3072]
//     scalar %2 f32 0.5                a constant of one element that belongs to an operator
//     node %3 f32[8,3072] matmul %0 %1
//     node %4 f32[8,3072] gelu %3 approximate=none
//     output %4                        results in their order
//
// Recomposed operators that stand for several Linears are spelled out; activations keep their names. An absent operand
// is `-`. Attributes that have their default are left out; of a recomposed operator `body` lists what it was spelled
// with.
#include "link/piece_text.hpp"

#include <fmt/format.h>

#include <map>

#include "ir/outline.hpp"
#include "match/attention.hpp"
#include "match/pattern.hpp"

namespace opfuse {
namespace {

/// Puts the nodes of a composite in its place.
void spell_out(Graph& graph, std::string_view name) {
  const std::vector<Node*> nodes = graph.nodes();
  for (Node* node : nodes) {
    if (!node->body || operator_name(*node) != name) continue;
    const std::vector<Value*> results = inline_body(graph, *node->body, node->inputs, node);
    for (size_t i = 0; i < results.size(); ++i) take_over(graph, node->outputs[i], results[i]);
    graph.erase(node);
  }
}

class Writer {
 public:
  std::string run(const Node& piece, const Graph& body) {
    const std::string composite =
        piece.pattern.substr(piece.pattern.rfind(':') + 1);  // of placed nodes behind the device
    out_ = fmt::format("opfuse-piece 1\npattern {}\nname {}\n", composite, piece.label);
    for (size_t i = 0; i < body.inputs().size(); ++i) {
      const bool constant = i < piece.inputs.size() && piece.inputs[i] && piece.inputs[i]->is_constant();
      const Value* v = body.inputs()[i];
      out_ += fmt::format("{} {} {}\n", constant ? "constant" : "input", number(v), v->type.text());
    }
    for (const Node* node : body.nodes()) write(*node);
    for (const Value* v : body.outputs()) out_ += fmt::format("output {}\n", number(v));
    return std::move(out_);
  }

 private:
  std::string out_;
  std::map<int, int> numbers_;

  std::string number(const Value* v) {
    return fmt::format("%{}", numbers_.emplace(v->id, static_cast<int>(numbers_.size())).first->second);
  }

  void write(const Node& node) {
    for (const Value* v : node.inputs) {
      if (!v || !v->is_constant() || numbers_.contains(v->id)) continue;
      if (v->constant->elements() == 1)
        out_ += fmt::format("scalar {} {} {}\n", number(v), name_of(v->type.dtype), v->constant->real(0));
      else
        out_ += fmt::format("constant {} {}\n", number(v), v->type.text());
    }
    std::string operands;
    for (const Value* v : node.inputs) operands += v ? " " + number(v) : " -";
    std::string attributes;
    if (!node.body)
      for (const auto& [name, value] : node.attr_map()) {
        const AttrValue* otherwise = find(node.op->default_attrs, name);
        if (!otherwise || *otherwise != value) attributes += fmt::format(" {}={}", name, text_of(value));
      }
    for (const Node* inner : node.body ? node.body->nodes() : std::vector<Node*>{})  // which of its forms it is
      attributes += (attributes.empty() ? " body=" : ",") + std::string(operator_name(*inner));
    for (const Value* v : node.outputs)
      out_ += fmt::format("node {} {} {}{}{}\n", number(v), v->type.text(), operator_name(node), operands, attributes);
  }
};

}  // namespace

std::string piece_text(const Node& piece) {
  Graph body = piece.body->clone();
  spell_out(body, kInProjection);
  return Writer().run(piece, body);
}

}  // namespace opfuse
