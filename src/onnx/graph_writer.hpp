// The writer's state for one graph: names, the flat list of encoded nodes, the initializers they read.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "onnx/node_export.hpp"
#include "onnx/wire.hpp"
#include "onnx/write.hpp"

namespace opfuse::onnx {

class GraphWriter {
 public:
  GraphWriter(const Graph& graph, const WriteOptions& options);
  /// Encodes all nodes. Afterwards the members below are complete.
  void run();

  Encoder nodes;        ///< GraphProto's fields 1
  Encoder value_types;  ///< GraphProto's fields 13: results that inference does not know (of opaque nodes)
  std::vector<std::pair<std::string, Tensor>> initializers;
  std::map<std::string, int64_t> opsets;  ///< by domain
  std::string name_of(const Value* value) const { return names_.at(value); }

 private:
  using Bindings = std::map<const Value*, const Value*>;  ///< value of a body -> value of the outermost graph

  void choose_opset();
  void claim_names(const Graph& graph);
  void write_graph(const Graph& graph, Bindings& bindings);
  void write_node(const Node& node, Bindings& bindings);
  void write_body(const Node& node, Bindings& bindings);
  void write_known(const Node& node, const Bindings& bindings);
  void write_opaque(const Node& node, const Bindings& bindings);
  void write_identity(const std::string& from, const std::string& to);
  void encode_node(const std::string& op_type, const std::string& domain, const std::string& name,
                   const std::vector<std::string>& inputs, const std::vector<std::string>& outputs, Bytes fields);
  const Value* resolve(const Value* value, const Bindings& bindings) const;
  const std::string& name(const Value* value);
  void name_results(const Node& node);
  std::string unique(const std::string& wish);
  std::string add_initializer(Tensor tensor, const std::string& wish);

  const Graph& graph_;
  const WriteOptions options_;
  int64_t opset_ = 0;
  std::map<const Value*, std::string> names_;
  std::set<std::string> used_, node_names_;
  std::set<const Value*> written_constants_;
};

}  // namespace opfuse::onnx
