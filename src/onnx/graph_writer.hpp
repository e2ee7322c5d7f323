// The writer's state for one graph: names, the encoded nodes, the initializers they read, and the functions they call.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "onnx/call_record.hpp"
#include "onnx/node_export.hpp"
#include "onnx/wire.hpp"
#include "onnx/write.hpp"

namespace opfuse::onnx {

class GraphWriter {
 public:
  GraphWriter(const Graph& graph, const WriteOptions& options);
  /// Encodes all nodes. Afterwards the members below are complete.
  void run();

  Encoder value_types;  ///< GraphProto's fields 13: types of results
  Encoder functions;    ///< ModelProto's fields 25
  std::vector<std::pair<std::string, Tensor>> initializers;
  std::map<std::string, int64_t> opsets;                ///< by domain
  const Encoder& nodes() const { return main_.nodes; }  ///< GraphProto's fields 1
  std::string name_of(const Value* value) const { return main_.names.at(value); }

 private:
  using Bindings = std::map<const Value*, const Value*>;  ///< value of a body -> value of the outermost graph

  /// A name space: the main graph, or one function.
  struct Scope {
    Encoder nodes;
    std::map<const Value*, std::string> names;
    std::set<std::string> used, node_names;
    std::set<const Value*> written_constants;
    bool function = false;
    CallRecord record;                 ///< function: what gives its nodes their names back
    std::set<std::string> attributes;  ///< function: names of those that calls give
    Encoder given;                     ///< of them, what this call gives: NodeProto's fields 5
  };

  void choose_opset();
  void claim_names(const Graph& graph);
  void describe_values();
  void write_graph(const Graph& graph, Bindings& bindings);
  void write_node(const Node& node, Bindings& bindings);
  void write_body(const Node& node, Bindings& bindings);
  void write_call(const Node& node, Bindings& bindings);
  std::string function_of(const Node& node, const std::string& encoded);
  std::string refer(const std::string& op_type, Bytes fields);
  void claim_operands(const Node& node, Scope& scope);
  void write_known(const Node& node, const Bindings& bindings);
  void write_choice(const Node& node, const Bindings& bindings);
  bool is_flattened(const Node& node) const;
  void write_flattened(const Node& node, const Bindings& bindings);
  void write_opaque(const Node& node, const Bindings& bindings);
  void write_identity(const std::string& from, const std::string& to);
  void encode_node(const std::string& op_type, const std::string& domain, const std::string& name,
                   const std::vector<std::string>& inputs, const std::vector<std::string>& outputs, Bytes fields);
  const Value* resolve(const Value* value, const Bindings& bindings) const;
  const std::string& name(const Value* value);
  const std::string* shared_constant(const Value& value);
  void name_results(const Node& node);
  std::string unique(const std::string& wish);
  std::string add_constant(const Tensor& tensor, const std::string& wish);
  void write_constant(const std::string& name, const Tensor& tensor, const std::string& origin);

  const Graph& graph_;
  const WriteOptions options_;
  int64_t opset_ = 0;
  Scope main_;
  Scope* scope_ = &main_;
  std::map<std::string, std::string> function_names_;  ///< encoded body -> name
  std::set<std::string> used_function_names_;
};

}  // namespace opfuse::onnx
