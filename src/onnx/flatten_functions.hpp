// Model-local functions, inlined while reading.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "base/limits.hpp"
#include "onnx/problems.hpp"
#include "onnx/wire.hpp"

namespace opfuse::onnx {

/// A node with the operator set version that applies to it (functions import their own).
struct FlatNode {
  NodeProto proto;
  int64_t opset = 0;        ///< version of the node's domain; 0 when the domain is not imported
  bool unreadable = false;  ///< a call that could not be inlined; its problem is recorded
};

struct FlatNodes {
  std::vector<FlatNode> nodes;
  std::deque<std::string> names;  ///< storage of names and attributes that inlining made
  bool calls_left = false;        ///< a call could not be inlined: the functions must be kept in the file
};

/// The graph's nodes, calls of model-local functions replaced by their bodies: inner tensors get the call's name in
/// front, attribute references become the caller's values. A function whose body holds graphs stays a call.
/// Throws E::malformed_model for recursion and beyond Limits::inlined_nodes and nested_functions, E::duplicate_name for
/// two functions of one name. With `problems` they are recorded, each function's once, and its calls are unreadable.
FlatNodes flatten_functions(const ModelProto& model, const Limits& limits, Problems* problems = nullptr);

/// Version of a domain ("" and "ai.onnx" are one); 0 when it is not imported.
int64_t opset_version(const std::vector<OperatorSet>& opsets, Bytes domain);
inline bool is_default_domain(Bytes domain) { return domain.empty() || domain == "ai.onnx"; }

}  // namespace opfuse::onnx
