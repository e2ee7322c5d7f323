// One node of the Graph while it becomes an ONNX node.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "onnx/wire.hpp"
#include "opfuse/error.hpp"

namespace opfuse::onnx {

/// What an exporter sees and fills. `operands` are resolved through the bodies of fused nodes: a constant of the
/// outermost graph is seen as one.
struct NodeExport {
  const Node& node;
  int64_t opset;
  std::vector<const Value*> operands;  ///< null: absent
  std::vector<std::string> inputs;     ///< names, "" where absent
  std::vector<std::string> outputs;
  std::function<std::string(Tensor)> constant;  ///< adds an initializer; its name

  std::string op_type;
  AttrMap attrs;    ///< declared attributes that differ from the operator's defaults
  Encoder encoded;  ///< encoded attributes

  /// Takes an attribute out of `attrs`; its default when it is not there.
  AttrValue take(const std::string& name);
  std::vector<int64_t> take_integers(const std::string& name) { return std::get<std::vector<int64_t>>(take(name)); }
  /// Puts `name` into input `index` (appending absent ones before it).
  void set_input(size_t index, std::string name);
  /// The integers of a constant operand, which is removed. E::unsupported_op when it is computed: `since` has it.
  std::vector<int64_t> operand_to_integers(size_t index, int64_t since);
  /// An attribute that became an operand in opset `since`: written in the form of this opset. Empty: absent.
  void integers_by_opset(const std::string& name, size_t index, int64_t since);

  void put(const std::string& name, const AttrValue& value);
  void put_tensor(const std::string& name, const Tensor& value);
  Error unwritable(const std::string& why, int64_t since) const;
};

/// Chooses the ONNX operator and its attributes by the table. E::unsupported_op when the opset has none.
void export_known(NodeExport& node);

/// The oldest opset that has the operator, 0 when no opset does.
int64_t first_opset_of(const Node& node);

}  // namespace opfuse::onnx
