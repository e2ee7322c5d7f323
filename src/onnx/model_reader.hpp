// The reader's state for one model.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/flatten_functions.hpp"
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
  void check_versions() const;
  void read_initializers();
  void read_inputs();
  void read_node(const FlatNode& node);
  bool stand_in_for(const FlatNode& node);
  void read_constant(const NodeProto& node);
  /// The branch that an If with a constant condition takes, in its place. False: it is no such node.
  bool read_branch(const FlatNode& node, const Source& source);  // branches.cpp
  class Scope;
  std::set<int> ids_of_values() const;
  /// A node that makes, changes or reads a sequence of known length. False: it is none.
  bool read_sequence(const FlatNode& node, const Source& source);  // sequences.cpp
  /// Makes a value of a folded sequence, for a reader that is not known.
  void materialise(Bytes name);
  void read_outputs();
  void read_metadata();

  std::vector<Value*> operands(const NodeProto& node);
  std::optional<std::vector<Value*>> try_known(const FlatNode& node, const Source& source, std::string& reason);
  std::vector<Value*> make_opaque(const FlatNode& node, const Source& source, std::string reason);
  Source source_of(const FlatNode& node) const;
  TensorType declared_type(const ValueInfo& info);
  Dim dimension(const Dimension& dim, const std::string& what);
  void define(Bytes name, Value* value);
  Value* value_named(Bytes name) const;
  void keep_value_info(std::string_view key, const ValueInfo& info, const TensorType& type);

  ModelProto model_;
  FlatNodes flat_;
  const ReadOptions options_;
  TensorReader tensors_;
  Graph graph_;
  std::unordered_map<Bytes, Value*> values_;
  std::unordered_map<Bytes, const ValueInfo*> infos_;
  std::set<std::string> symbols_;  ///< names in the file, so that made-up ones differ
  int unnamed_ = 0;
  Problems problems_;

  struct Branch {
    ModelProto model;
    FlatNodes flat;
  };
  std::deque<Branch> branches_;  ///< those taken: what names point into
  std::string prefix_;           ///< of values inside a branch
  int depth_ = 0;
  struct Sequence {
    std::vector<Value*> values;
    const FlatNode* node = nullptr;
  };
  std::unordered_map<Bytes, Sequence> sequences_;
};

}  // namespace opfuse::onnx
