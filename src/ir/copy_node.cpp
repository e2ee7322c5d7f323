#include "ir/copy_node.hpp"

#include <map>

#include "ir/body.hpp"

namespace opfuse {
namespace {

using Renamed = std::function<std::string(const Value&)>;

std::unique_ptr<Graph> copy_body(const Node& node, const std::vector<Value*>& operands, const Renamed& renamed) {
  const auto name_of = [&](const Value& v) { return renamed ? renamed(v) : v.name; };
  auto body = std::make_unique<Graph>();
  const Graph& from = *node.body;
  std::map<int, Value*> copies;  // by id of the original
  const std::vector<TensorType> taken = body_input_types(*node.op, node.attrs(), types_of(operands));
  for (size_t i = 0; i < from.inputs().size(); ++i)
    copies[from.inputs()[i]->id] =
        body->add_input(from.inputs()[i]->name, operands[i] ? taken[i] : from.inputs()[i]->type);
  for (const Value* c : from.constants()) copies[c->id] = body->add_constant(*c->constant, c->name);
  for (const Node* inner : from.nodes()) {
    std::vector<Value*> inputs;
    for (const Value* v : inner->inputs) inputs.push_back(v ? copies.at(v->id) : nullptr);
    const Node* copy = copy_node(*body, *inner, inputs, nullptr, renamed);
    for (size_t i = 0; i < copy->outputs.size(); ++i) {
      copy->outputs[i]->name = name_of(*inner->outputs[i]);
      copies[inner->outputs[i]->id] = copy->outputs[i];
    }
  }
  std::vector<Value*> outputs;
  for (const Value* v : from.outputs()) outputs.push_back(copies.at(v->id));
  body->set_outputs(outputs);
  return body;
}

}  // namespace

Node* copy_node(Graph& graph, const Node& node, const std::vector<Value*>& operands, Node* before,
                const Renamed& renamed) {
  std::unique_ptr<Graph> body = node.body ? copy_body(node, operands, renamed) : nullptr;
  std::vector<TensorType> types;
  if (body) types = body_result_types(*node.op, node.attrs(), types_of(body->outputs()));
  Node* copy = graph.add_node(node.op, node.attrs_, operands, node.outputs.size(), node.sources, before, types);
  copy->body = std::move(body);
  copy->pattern = node.pattern;
  copy->label = node.label;
  return copy;
}

}  // namespace opfuse
