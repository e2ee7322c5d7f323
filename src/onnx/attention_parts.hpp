// What the importers of Attention operators share.
#pragma once

#include "onnx/import_spelled.hpp"
#include "onnx/known_shape.hpp"

namespace opfuse::onnx {

/// [batch, heads, sequence, size], cut from [batch, sequence, heads * size] where need be.
Value* heads_of(Speller& s, Value* x, int64_t heads, const char* attribute);

/// 0 where query i may see key j, that is j <= i + past, else -inf. `past` may be null.
Value* causal_bias(Speller& s, Value* q, Value* k, Value* past, DType dtype);

}  // namespace opfuse::onnx
