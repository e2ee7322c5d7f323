// Attention as exporters write it, for the builders of transformers.
#pragma once

#include "zoo/builder.hpp"

namespace opfuse {

/// Linear -> GELU -> Linear with four times the width between.
inline Value* mlp(Builder& b, Value* x, const std::string& first, const std::string& act, const std::string& second) {
  const int64_t width = x->type.shape[x->type.shape.rank() - 1].value();
  return b.token_linear(b.gelu(b.token_linear(x, first, 4 * width, 2.0), act), second, width);
}

inline Value* softmax(Builder& b, const std::string& path, Value* x) {
  return b.at(path, "softmax", "Softmax", {x}, {{"axis", int64_t{-1}}});
}

inline Value* matmul(Builder& b, const std::string& path, Value* x, Value* y) {
  return b.at(path, "matmul", "MatMul", {x, y});
}

inline Value* add(Builder& b, const std::string& path, Value* x, Value* y) { return b.at(path, "add", "Add", {x, y}); }

}  // namespace opfuse
