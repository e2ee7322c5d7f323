// ONNX operators without a counterpart: they are read as the function bodies that ONNX gives them, in opfuse's
// operators, and recomposition names them again.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "onnx/node_import.hpp"

namespace opfuse::onnx {

/// The results of a node of the default domain, or nullopt when it is none of these operators.
std::optional<std::vector<Value*>> import_spelled(NodeImport& node);

/// True for Attention, RMSNormalization and RotaryEmbedding.
bool is_spelled(std::string_view onnx_op);

/// Writes a body down, operator by operator.
class Speller {
 public:
  explicit Speller(NodeImport& node) : node_(node) {}

  Value* op(const char* name, std::vector<Value*> operands, const AttrMap& attrs = {}) {
    return node_.emit(name, attrs, std::move(operands))[0];
  }
  Value* integers(const std::vector<int64_t>& values) { return node_.integers_constant(values); }
  Value* number(double value, DType dtype) { return node_.constant(Tensor::scalar(dtype, value)); }
  Value* cast(Value* x, DType to) { return x->type.dtype == to ? x : op("cast", {x}, {{"to", to}}); }
  Value* reshape(Value* x, const std::vector<int64_t>& shape) { return op("reshape", {x, integers(shape)}); }
  Value* transpose(Value* x, const std::vector<int64_t>& perm) { return op("transpose", {x}, {{"perm", perm}}); }
  Value* unsqueeze(Value* x, int64_t axis) { return op("unsqueeze", {x, integers({axis})}); }
  /// x[.., from:to:step, ..] along `axis`
  Value* slice(Value* x, int64_t axis, int64_t from, int64_t to, int64_t step = 1) {
    return op("slice", {x, integers({from}), integers({to}), integers({axis}), integers({step})});
  }
  Value* concat(std::vector<Value*> parts, int64_t axis) { return op("concat", std::move(parts), {{"axis", axis}}); }
  /// The size of `axis` as a vector of one.
  Value* size_of(Value* x, int64_t axis) { return slice(op("shape", {x}), 0, axis, axis + 1); }

 private:
  NodeImport& node_;
};

std::vector<Value*> import_attention(NodeImport& node);          // import_attention.cpp
std::vector<Value*> import_rms_normalization(NodeImport& node);  // import_spelled.cpp
std::vector<Value*> import_rotary_embedding(NodeImport& node);

}  // namespace opfuse::onnx
