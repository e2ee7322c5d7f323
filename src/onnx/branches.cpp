// An If whose condition is a constant is the branch that it takes: that graph's nodes are read in its place, or those
// of both branches and a choice. Its names are visible inside it only; values that it makes are named after the node,
// results as the node's results.
#include <algorithm>

#include "base/fail.hpp"
#include "ir/defined_symbols.hpp"
#include "onnx/defined_sizes.hpp"
#include "onnx/file_checks.hpp"
#include "onnx/model_reader.hpp"
#include "onnx/opaque.hpp"
#include "ops/is_a.hpp"
#include "ops/read_sizes.hpp"
#include "ops/shape.hpp"
#include "ops/size.hpp"

namespace opfuse::onnx {
namespace {

const Attribute* branch_of(const NodeProto& node, bool taken) {
  for (const Attribute& a : node.attributes)
    if (a.name == (taken ? "then_branch" : "else_branch") && a.type == AttributeType::graph) return &a;
  return nullptr;
}

/// `a` where the node's condition holds, else `b`.
Value* chosen(NodeImport& node, Value* a, Value* b, Bytes name) {
  if (a == b) return a;
  const Shape &x = a->type.shape, &y = b->type.shape;
  if (a->type.dtype != b->type.dtype || !x.ranked || !y.ranked || x.rank() != y.rank())
    throw fail(E::unsupported_op, "its condition is computed by the run, and its branches give {} and {}",
               a->type.text(), b->type.text());
  Value* condition = node.input(0);
  if (condition->type.shape.rank() > 0)
    condition = node.emit("reshape", {}, {condition, node.integers_constant({})})[0];
  if (x == y) return node.emit("where", {}, {condition, a, b})[0];
  std::vector<int64_t> axes;
  for (size_t d = 0; d < x.rank(); ++d)
    if (!(x[d] == y[d])) axes.push_back(static_cast<int64_t>(d));
  return node.emit("choose", {{"axes", axes}, {kDefines, symbols_named(node.graph, std::string(name), axes.size())}},
                   {condition, a, b})[0];
}

/// One number of the caller's (a decoder's use_cache_branch), which may be given when the model is read.
bool is_switch(const Value& input) {
  const auto count = input.type.shape.ranked ? input.type.shape.elements().constant() : std::nullopt;
  return count == 1;
}

/// Only a run can say it: it is computed from data, or from sizes that the run finds. What follows from other sizes is
/// known once these are.
bool decided_by_the_run(const Graph& graph, const Value& condition) {
  const std::set<std::string> found = defined_symbols(graph);
  std::set<std::string> used;
  std::set<const Value*> seen;
  std::vector<const Value*> open{&condition};
  bool data = false, switches = false;
  while (!open.empty()) {
    const Value& value = *open.back();
    open.pop_back();
    if (value.is_constant() || !seen.insert(&value).second) continue;
    if (!value.producer) {
      (is_switch(value) ? switches : data) = true;
      continue;
    }
    for (const std::string& symbol : defined_symbols(*value.producer)) used.insert(symbol);
    const bool of_shapes = is_a<ShapeOf>(*value.producer) || is_a<SizeOf>(*value.producer);
    for (const Value* input : value.producer->inputs) {
      if (of_shapes && input)
        for (const Dim& dim : input->type.shape.dims) dim.collect_symbols(used);
      else if (input && !is_a<ReadSizes>(*value.producer))
        open.push_back(input);
    }
  }
  if (switches) return false;
  return data || std::ranges::any_of(used, [&](const std::string& symbol) { return found.contains(symbol); });
}

std::vector<Bytes> names_defined_in(const FlatNodes& flat, const GraphProto& graph) {
  std::vector<Bytes> names;
  for (const ValueInfo& input : graph.inputs) names.push_back(input.name);
  for (const TensorProto& tensor : graph.initializers) names.push_back(tensor.name);
  for (const FlatNode& node : flat.nodes)
    names.insert(names.end(), node.proto.outputs.begin(), node.proto.outputs.end());
  return names;
}

}  // namespace

/// Names of a branch hide those around it until it ends, also by an error.
class ModelReader::Scope {
 public:
  Scope(ModelReader& reader, const std::vector<Bytes>& names, const std::string& prefix)
      : reader_(reader), outer_prefix_(reader.prefix_), names_(names) {
    for (Bytes name : names)
      if (const auto found = reader.values_.find(name); found != reader.values_.end()) hidden_.push_back(*found);
    reader.prefix_ += prefix + "/";
    ++reader.depth_;
  }
  ~Scope() {
    for (Bytes name : names_) reader_.values_.erase(name);
    for (const auto& [name, value] : hidden_) reader_.values_[name] = value;
    reader_.prefix_ = outer_prefix_;
    --reader_.depth_;
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  ModelReader& reader_;
  std::string outer_prefix_;
  std::vector<Bytes> names_;
  std::vector<std::pair<Bytes, Value*>> hidden_;
};

const ModelReader::Body& ModelReader::keep_body(Bytes encoded) {
  check_nesting(depth_ + 1, options_.limits);
  Body& kept = bodies_.emplace_back();  // names are views of what it holds
  kept.model.opsets = model_.opsets;
  kept.model.functions = model_.functions;
  kept.model.graph = parse_graph_proto(encoded);
  if (looked_at_.insert(encoded.data()).second) check_nodes(kept.model.graph.nodes, false, problems_);
  kept.flat = flatten_functions(kept.model, options_.limits);
  if (!kept.model.graph.sparse_initializers.empty()) throw fail(E::unsupported_op, "a branch has sparse initializers");
  for (const ValueInfo& info : kept.model.graph.values) infos_.emplace(info.name, &info);
  return kept;
}

std::vector<Value*> ModelReader::read_body(const Body& body, const std::vector<Value*>& arguments,
                                           const std::string& prefix) {
  const GraphProto& graph = body.model.graph;
  if (graph.inputs.size() != arguments.size())
    throw fail(E::arity_mismatch, "a body takes {} values, the node gives {}", graph.inputs.size(), arguments.size());
  const Scope scope(*this, names_defined_in(body.flat, graph), prefix);
  for (size_t i = 0; i < arguments.size(); ++i) values_[graph.inputs[i].name] = arguments[i];
  for (const TensorProto& proto : graph.initializers)
    define(proto.name, graph_.add_constant(tensors_.read(proto, fmt::format("initializer \"{}\"", proto.name))));
  for (const FlatNode& inner : body.flat.nodes) read_inner(inner);
  std::vector<Value*> results;
  for (const ValueInfo& output : graph.outputs) {
    if (sequences_.contains(output.name) || empty_optionals_.contains(output.name))
      throw fail(E::unsupported_op, "a branch or body that gives a sequence or an optional is not supported");
    results.push_back(value_named(output.name));
    if (!results.back()) throw fail(E::missing_tensor, "result \"{}\" of a branch is not defined", output.name);
  }
  return results;
}

/// Where problems are collected, those of a body's node are told once, however often the body is read.
void ModelReader::read_inner(const FlatNode& node) {
  if (!options_.problems) return read_node(node);
  try {
    read_node(node);
  } catch (const Error& error) {
    if (error.diagnostic().code.starts_with("E03") || error.diagnostic().name == "internal") throw;
    if (told_.insert(node.proto.op_type.data()).second) problems_.attempt([&] { throw error; });
    if (!stand_in_for(node)) throw;
  }
}

void ModelReader::define_results(const FlatNode& node, const std::vector<Value*>& results, const std::set<int>& known) {
  for (size_t i = 0; i < results.size() && i < node.proto.outputs.size(); ++i) {
    if (node.proto.outputs[i].empty()) continue;
    if (results[i]->producer && !known.contains(results[i]->id))
      results[i]->name = prefix_ + std::string(node.proto.outputs[i]);
    define(node.proto.outputs[i], results[i]);
  }
}

bool ModelReader::read_branch(const FlatNode& node, const Source& source) {
  if (!source.domain.empty() || source.op_type != "If" || node.proto.inputs.size() != 1) return false;
  Value* condition = operand(node.proto.inputs[0]);
  if (!condition) return false;
  if (!condition->is_constant()) return read_choice(node, source, condition);
  if (condition->constant->elements() != 1) return false;
  if (condition->type.dtype != DType::boolean)
    throw fail(E::dtype_mismatch, "the condition is {}, bool is expected", condition->type.text());
  const Attribute* branch = branch_of(node.proto, condition->constant->integer(0) != 0);
  if (!branch) throw fail(E::bad_attribute, "a branch is missing");
  read_in_place(node, source, [&] {
    const Body& body = keep_body(branch->graph);
    const size_t results = body.model.graph.outputs.size();
    if (results != node.proto.outputs.size())
      throw fail(E::arity_mismatch, "the branch gives {} values, the node has {} results", results,
                 node.proto.outputs.size());
    return read_body(body, {}, source.name);
  });
  return true;
}

/// An If that the run decides, by data or by sizes that it finds (a test for zero boxes): operators have no effect but
/// their results, so both branches are computed and one of each pair of results is taken. Branches that give sequences,
/// or values of different ranks or types, stay as they are.
bool ModelReader::read_choice(const FlatNode& node, const Source& source, Value* condition) {
  const Attribute *then = branch_of(node.proto, true), *otherwise = branch_of(node.proto, false);
  const auto count = condition->type.shape.ranked ? condition->type.shape.elements().constant() : std::nullopt;
  if (!then || !otherwise || condition->type.dtype != DType::boolean || count != 1) return false;
  if (!decided_by_the_run(graph_, *condition)) return false;
  read_in_place(node, source, [&] {
    const std::vector<Value*> a = read_body(keep_body(then->graph), {}, source.name + "/then"),
                              b = read_body(keep_body(otherwise->graph), {}, source.name + "/else");
    if (a.size() != node.proto.outputs.size() || b.size() != a.size())
      throw fail(E::arity_mismatch, "the branches give {} and {} values, the node has {} results", a.size(), b.size(),
                 node.proto.outputs.size());
    NodeImport import(graph_, node.proto, node.opset, {condition}, source, tensors_, options_.fold_shapes,
                      options_.limits);
    std::vector<Value*> results;
    for (size_t i = 0; i < a.size(); ++i) results.push_back(chosen(import, a[i], b[i], node.proto.outputs[i]));
    return results;
  });
  return true;
}

void ModelReader::read_in_place(const FlatNode& node, const Source& source,
                                const std::function<std::vector<Value*>()>& results) {
  const size_t before = appended();
  const std::set<int> known = ids_of_values();
  try {
    define_results(node, results(), known);
  } catch (const Error& error) {
    if (!error.diagnostic().code.starts_with("E03")) throw;
    give_up(before);
    const std::vector<Value*> kept = make_opaque(node, source, error.diagnostic().message);
    for (size_t i = 0; i < kept.size(); ++i) define(node.proto.outputs[i], kept[i]);
  }
}

std::set<int> ModelReader::ids_of_values() const {
  std::set<int> ids;
  for (const Value* value : graph_.values()) ids.insert(value->id);
  return ids;
}

}  // namespace opfuse::onnx
