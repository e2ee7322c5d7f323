// What the importers of Attention operators share.
#pragma once

#include "onnx/import_spelled.hpp"

namespace opfuse::onnx {

/// [batch, heads, sequence, size], cut from [batch, sequence, heads * size] where need be.
Value* heads_of(Speller& s, Value* x, int64_t heads, const char* attribute);

/// The size of an axis that has to be known; `what` names it in the refusal.
int64_t known_size(const Value* x, size_t axis, const char* what);

/// 0 where query i may see key j, that is j <= i + past, else -inf. `past` may be null.
Value* causal_bias(Speller& s, Value* q, Value* k, Value* past, DType dtype);

}  // namespace opfuse::onnx
