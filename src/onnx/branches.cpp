// An If whose condition is a constant is the branch that it takes: that graph's nodes are read in its place. Its names
// are visible inside it only; values that it makes are named after the node, results as the node's results.
#include "base/fail.hpp"
#include "onnx/model_reader.hpp"

namespace opfuse::onnx {
namespace {

constexpr int kMaxBranchDepth = 32;

const Attribute* branch_of(const NodeProto& node, bool taken) {
  for (const Attribute& a : node.attributes)
    if (a.name == (taken ? "then_branch" : "else_branch") && a.type == AttributeType::graph) return &a;
  return nullptr;
}

std::vector<Bytes> names_defined_in(const FlatNodes& flat, const GraphProto& graph) {
  std::vector<Bytes> names;
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

bool ModelReader::read_branch(const FlatNode& node, const Source& source) {
  if (!source.domain.empty() || source.op_type != "If" || node.proto.inputs.size() != 1) return false;
  const Value* condition = value_named(node.proto.inputs[0]);
  if (!condition || !condition->is_constant() || condition->constant->elements() != 1) return false;
  const Attribute* branch = branch_of(node.proto, condition->constant->integer(0) != 0);
  if (!branch) throw fail(E::bad_attribute, "a branch is missing");
  if (depth_ >= kMaxBranchDepth) throw fail(E::malformed_model, "graphs are nested more than {} deep", kMaxBranchDepth);
  Branch& kept = branches_.emplace_back();  // names are views of what it holds
  kept.model.opsets = model_.opsets;
  kept.model.functions = model_.functions;
  kept.model.graph = parse_graph_proto(branch->graph);
  kept.flat = flatten_functions(kept.model);
  const GraphProto& graph = kept.model.graph;
  if (graph.outputs.size() != node.proto.outputs.size())
    throw fail(E::arity_mismatch, "the branch gives {} values, the node has {} results", graph.outputs.size(),
               node.proto.outputs.size());
  if (graph.sparse_initializers > 0) throw fail(E::unsupported_op, "a branch has sparse initializers");
  for (const ValueInfo& info : graph.values) infos_.emplace(info.name, &info);
  std::vector<Value*> results;
  const std::set<int> known = ids_of_values();
  {
    const Scope scope(*this, names_defined_in(kept.flat, graph), source.name);
    for (const TensorProto& proto : graph.initializers)
      define(proto.name, graph_.add_constant(tensors_.read(proto, fmt::format("initializer \"{}\"", proto.name))));
    for (const FlatNode& inner : kept.flat.nodes) read_node(inner);
    for (const ValueInfo& output : graph.outputs) {
      results.push_back(value_named(output.name));
      if (!results.back()) throw fail(E::missing_tensor, "result \"{}\" of a branch is not defined", output.name);
    }
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i]->producer && !known.contains(results[i]->id)) results[i]->name = std::string(node.proto.outputs[i]);
    define(node.proto.outputs[i], results[i]);
  }
  return true;
}

std::set<int> ModelReader::ids_of_values() const {
  std::set<int> ids;
  for (const Value* value : graph_.values()) ids.insert(value->id);
  return ids;
}

}  // namespace opfuse::onnx
