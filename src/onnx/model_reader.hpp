// The reader's state for one model.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/declared_types.hpp"
#include "onnx/flatten_functions.hpp"
#include "onnx/node_import.hpp"
#include "onnx/problems.hpp"
#include "onnx/read.hpp"
#include "onnx/tensor_proto.hpp"
#include "onnx/wire.hpp"

namespace opfuse::onnx {

class ModelReader {
 public:
  /// `owner` keeps `bytes` alive; tensors will share it.
  ModelReader(Bytes bytes, std::shared_ptr<const void> owner, const std::string& folder, const std::string& path,
              const ReadOptions& options);
  Graph read();
  std::vector<ModelInput> inputs();

 private:
  void read_initializers();
  void read_inputs();
  void read_node(const FlatNode& node);
  bool stand_in_for(const FlatNode& node);
  void read_constant(const NodeProto& node);
  /// The branch that an If with a constant condition takes, in its place. False: it is not such a node.
  bool read_branch(const FlatNode& node, const Source& source);  // branches.cpp
  class Scope;
  /// A graph within the model: what names point into.
  struct Body {
    ModelProto model;
    FlatNodes flat;
  };
  const Body& keep_body(Bytes encoded);
  /// The results of a body read with these values as its inputs; names of its own begin with `prefix`.
  std::vector<Value*> read_body(const Body& body, const std::vector<Value*>& arguments, const std::string& prefix);
  void read_inner(const FlatNode& node);
  /// The node's results; those made just now, which are not `known`, get their names.
  void define_results(const FlatNode& node, const std::vector<Value*>& results, const std::set<int>& known);
  /// Defines the node's results; where that is not supported (E03xx), the node stays as it is, with that reason.
  void read_in_place(const FlatNode& node, const Source& source, const std::function<std::vector<Value*>()>& results);
  /// A node whose bodies are read in its place, as often as they run. False: it is none.
  bool read_bodies(const FlatNode& node, const Source& source);  // loops.cpp
  using Unroller = std::vector<Value*> (ModelReader::*)(NodeImport&, const Source&);
  static Unroller unroller(const Source& source);
  std::vector<Value*> unrolled_scan(NodeImport& node, const Source& source);
  std::vector<Value*> unrolled_loop(NodeImport& node, const Source& source);
  std::vector<Value*> flex_attention(NodeImport& node, const Source& source);
  void check_unrolled(int64_t steps, const Body& body, const Source& source) const;
  std::set<int> ids_of_values() const;
  /// A node that makes, changes or reads a sequence of known length. False: it is none.
  bool read_sequence(const FlatNode& node, const Source& source);  // sequences.cpp
  bool read_optional(const FlatNode& node, const std::string& op);
  /// Makes a value of a folded sequence, for a reader that is not known.
  void materialise(Bytes name);
  void read_input(const ValueInfo& info);
  void read_outputs();
  void read_output(const ValueInfo& info, std::vector<Value*>& outputs);
  void read_metadata();
  void check_declared_output(const ValueInfo& info, const Value& value);
  void look_at_declared_values();
  void remark(const std::string& what, const Contradiction& wrong);

  Value* operand(Bytes name);
  std::vector<Value*> operands(const NodeProto& node);
  size_t appended() const;
  void give_up(size_t before);
  bool read_choice(const FlatNode& node, const Source& source, Value* condition);
  std::optional<std::vector<Value*>> import_node(const FlatNode& node, const Source& source);
  std::optional<std::vector<Value*>> try_known(const FlatNode& node, const Source& source, std::string& reason);
  bool needs_sizes(const Error& error) const;
  std::vector<Value*> make_opaque(const FlatNode& node, const Source& source, std::string reason);
  Source source_of(const FlatNode& node) const;
  TensorType declared_type(const ValueInfo& info);
  Dim dimension(const Dimension& dim, const std::string& what);
  void define(Bytes name, Value* value);
  Value* value_named(Bytes name) const;
  void keep_value_info(std::string_view key, const ValueInfo& info, const TensorType& type);

  ModelProto model_;
  std::string operators_;  ///< functions that the options define, encoded
  FlatNodes flat_;
  const ReadOptions options_;
  TensorReader tensors_;
  Graph graph_;
  std::unordered_map<Bytes, Value*> values_;
  std::unordered_map<Bytes, const ValueInfo*> infos_;
  std::set<Bytes> broken_;         ///< names whose problem is recorded (NodeOrder)
  std::set<std::string> symbols_;  ///< names in the file, so that made-up ones differ
  int unnamed_ = 0;
  std::string limited_;  ///< why an operand of the node being read stayed computed, where that is a limit
  Problems problems_{options_.limits.problems};

  std::deque<Body> bodies_;
  std::set<const char*> looked_at_;  ///< bodies whose nodes were checked: where they lie in the file
  std::set<const char*> told_;       ///< nodes of bodies whose problem is recorded: where they lie in the file
  std::string prefix_;               ///< of values inside a body
  int depth_ = 0;
  struct Sequence {
    std::vector<Value*> values;
    const FlatNode* node = nullptr;
  };
  std::unordered_map<Bytes, Sequence> sequences_;
  std::set<Bytes> empty_optionals_;
  size_t sizes_read_ = 0;  ///< nodes that read_sizes_of_operands made
};

}  // namespace opfuse::onnx
