// ONNX -> Graph.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/limits.hpp"
#include "ir/graph.hpp"
#include "opfuse/error.hpp"

namespace opfuse {

/// The opsets of the default domain and the IR versions that can be read.
constexpr int64_t kOldestOpset = 1, kNewestOpset = 28;
constexpr int64_t kOldestIr = 3, kNewestIr = 14;

/// Why a node of ReadOptions::rest is not understood, where it is among the problems.
inline constexpr const char* kUnreadable = "it could not be read";

struct ReadOptions {
  /// Nodes whose operands are all constant and whose result is a handful of numbers (shape arithmetic) become
  /// constants while reading; without it a Reshape by computed shape has no known result.
  bool fold_shapes = true;
  /// Values of dimension symbols that are known already: inference can see through more shape arithmetic.
  SymbolValues dimensions = {};
  /// Graph inputs to read as constants, by name (a shape or a number of repetitions that never changes). They take the
  /// place of an initializer of that name. E::unknown_name, E::bad_binding.
  std::map<std::string, Tensor> fixed_inputs = {};
  Limits limits = {};
  /// Operators of custom domains as expressions, "swish(x, b) = x * sigmoid(b * x)", or paths of files of them. They
  /// are read as functions of the model.
  std::vector<std::string> operators = {};
  /// Receives each problem of initializers and nodes by itself; the Error thrown holds them in one text.
  std::vector<Diagnostic>* problems = nullptr;
  /// With `problems`: what could be read beside them, where results of what could not are unknown.
  std::optional<Graph>* rest = nullptr;
  /// Receives what the file says of shapes and is not so, a sentence each: no run reads that.
  std::vector<std::string>* remarks = nullptr;
};

/// Reads a model. Weights share the file's mapping where it is aligned. Functions of the model are inlined; operators
/// that opfuse does not know become opaque nodes. Throws Error (E01xx, E02xx, file_not_found) that names the node.
Graph read_onnx(const std::string& path, const ReadOptions& options = {});

/// An input of a model file: what a caller has to give.
struct ModelInput {
  std::string name;
  TensorType type;
  bool decides_shapes = false;  ///< its value does: operators need it fixed (ReadOptions::fixed_inputs)
};

/// The inputs alone; no node or weight is read.
std::vector<ModelInput> onnx_inputs(const std::string& path);

/// The same from memory; external data is looked for in `folder`.
Graph read_onnx_bytes(std::string bytes, const std::string& folder = {}, const ReadOptions& options = {});

}  // namespace opfuse
