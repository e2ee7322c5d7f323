// Loops in a body go first, so that what they name is named once more for each part of the loop around them.
#include "region/unroll_parts.hpp"

#include <algorithm>
#include <map>

#include "ir/copy_node.hpp"
#include "ir/for_parts.hpp"
#include "ir/outline.hpp"
#include "ir/value_name.hpp"
#include "ops/concat.hpp"
#include "ops/recurrent_steps.hpp"
#include "ops/registry.hpp"
#include "ops/split.hpp"

namespace opfuse {
namespace {

bool is_loop(const Node& node) { return node.op == for_parts_op(); }

/// Constants of a body that the graph has already, by where their elements are.
class Constants {
 public:
  explicit Constants(Graph& graph) : graph_(graph) {
    for (Value* v : graph.constants()) known_.emplace(v->constant->data(), v);
  }
  Value* operator()(const Value& constant) {
    const auto [at, fresh] = known_.emplace(constant.constant->data(), nullptr);
    if (!fresh && at->second->type == constant.type) return at->second;
    Value* added = graph_.add_constant(*constant.constant);
    if (!constant.name.empty() && !graph_.find_value(constant.name)) added->name = constant.name;
    if (fresh) at->second = added;
    return added;
  }

 private:
  Graph& graph_;
  std::map<const void*, Value*> known_;  // looked up only
};

/// The nodes of the body once more, before the loop. part < 0: for whichever part.
std::vector<Value*> copy_body(Graph& graph, Node& loop, const std::vector<Value*>& operands, int64_t part,
                              Constants& constants) {
  const Graph& body = *loop.body;
  std::map<int, Value*> made;  // by id in the body
  for (size_t i = 0; i < operands.size(); ++i) made[body.inputs()[i]->id] = operands[i];
  for (const Value* c : body.constants()) made[c->id] = constants(*c);
  const auto renamed = [&](const Value& v) { return v.name.empty() ? v.name : name_in_part(loop, v.name, part); };
  for (const Node* node : body.nodes()) {
    std::vector<Value*> inputs;
    for (const Value* v : node->inputs) inputs.push_back(v ? made.at(v->id) : nullptr);
    Node* copy = part < 0 ? copy_node(graph, *node, inputs, &loop) : copy_node(graph, *node, inputs, &loop, renamed);
    if (part >= 0 && !copy->label.empty()) copy->label = name_in_part(loop, copy->label, part);
    for (size_t i = 0; i < copy->outputs.size(); ++i) {
      copy->outputs[i]->name = name_in_part(loop, body_value_name(loop, *node->outputs[i]), part);
      made[node->outputs[i]->id] = copy->outputs[i];
    }
  }
  std::vector<Value*> results;
  for (const Value* v : body.outputs()) results.push_back(made.at(v->id));
  return results;
}

/// Operand `i` in each part.
std::vector<Value*> parts_of(Graph& graph, Node& loop, size_t i) {
  const auto& attrs = loop.as<ForParts>();
  Value* whole = loop.inputs[i];
  const auto parts = static_cast<size_t>(attrs.parts);
  if (attrs.cuts[i] == ForParts::kWhole || !whole) return std::vector<Value*>(parts, whole);
  const std::string name = body_value_name(loop, *loop.body->inputs()[i]);
  std::vector<Value*> values;
  if (whole->is_constant()) {
    for (int64_t part = 0; part < attrs.parts; ++part)
      values.push_back(graph.add_constant(part_of(*whole->constant, attrs.cuts[i], attrs.parts, part)));
  } else {
    auto split = std::make_shared<Split::Attrs>();
    split->axis = attrs.cuts[i];
    split->split.assign(parts, loop.body->inputs()[i]->type.shape[static_cast<size_t>(attrs.cuts[i])].value());
    values = graph.add_node(ops().find("split"), split, {whole}, parts, {}, &loop)->outputs;
  }
  for (size_t part = 0; part < parts; ++part) {
    const std::string own = name_in_part(loop, name, static_cast<int64_t>(part));
    if (!graph.find_value(own)) values[part]->name = own;  // else another loop cuts it alike
  }
  return values;
}

void unroll(Graph& graph, Node& loop) {
  const auto& attrs = loop.as<ForParts>();
  std::vector<std::vector<Value*>> operands;  // by operand, by part
  for (size_t i = 0; i < loop.inputs.size(); ++i) operands.push_back(parts_of(graph, loop, i));
  Constants constants(graph);
  std::vector<std::vector<Value*>> results;  // by part
  for (int64_t part = 0; part < attrs.parts; ++part) {
    std::vector<Value*> of_part;
    for (const auto& values : operands) of_part.push_back(values[static_cast<size_t>(part)]);
    results.push_back(copy_body(graph, loop, of_part, part, constants));
  }
  for (size_t r = 0; r < loop.outputs.size(); ++r) {
    std::vector<Value*> parts;
    for (const auto& of_part : results) parts.push_back(of_part[r]);
    auto concat = std::make_shared<Concat::Attrs>();
    concat->axis = attrs.joins[r];
    const Node* maker = parts[0]->producer;
    Node* whole = graph.add_node(ops().find("concat"), concat, parts, 1, maker ? maker->sources : loop.sources, &loop);
    Value* result = loop.outputs[r];
    result->name = value_name(*result);  // the buffer of a loop that stays is named after the result's number
    take_over(graph, result, whole->output());
  }
  graph.erase(&loop);
}

}  // namespace

bool lies_part_by_part(const Node& loop) {
  const auto& attrs = loop.as<ForParts>();
  const auto first = [](int64_t axis) { return axis == 0; };
  for (size_t i = 0; i < loop.inputs.size(); ++i)
    if (attrs.cuts[i] != ForParts::kWhole &&
        !(first(attrs.cuts[i]) && loop.inputs[i] && !loop.inputs[i]->is_constant()))
      return false;
  for (const Value* result : loop.body->outputs())
    if (!result->producer) return false;  // an operand or a constant, once more for each part
  return std::all_of(attrs.joins.begin(), attrs.joins.end(), first) &&
         std::none_of(loop.body->nodes().begin(), loop.body->nodes().end(),
                      [](const Node* node) { return is_loop(*node) || node->op == recurrent_steps_op(); });
}

void unroll_parts(Graph& graph, bool keep) {
  const std::vector<Node*> nodes = graph.nodes();
  for (Node* node : nodes) {
    if (!is_loop(*node)) continue;
    unroll_parts(*node->body);
    if (!(keep && lies_part_by_part(*node))) unroll(graph, *node);
  }
}

std::vector<Value*> inline_part(Graph& graph, Node& loop, const std::vector<Value*>& operands) {
  Constants constants(graph);
  return copy_body(graph, loop, operands, -1, constants);
}

}  // namespace opfuse
