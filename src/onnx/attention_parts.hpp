// What the importers of Attention operators share.
#pragma once

#include "onnx/import_spelled.hpp"
#include "onnx/known_shape.hpp"

namespace opfuse::onnx {

/// [batch, heads, sequence, size], cut from [batch, sequence, heads * size] where need be.
Value* heads_of(Speller& s, Value* x, int64_t heads, const char* attribute);

/// 0 where query i may see key j, that is j <= i + past, else -inf. `past` may be null.
Value* causal_bias(Speller& s, Value* q, Value* k, Value* past, DType dtype);

/// Every head `times` times: [b, h, s, d] -> [b, h * times, s, d]
Value* repeated_heads(Speller& s, Value* x, int64_t times);

/// cap * tanh(scores / cap); `cap` 0: the scores
Value* capped(Speller& s, Value* scores, double cap);

/// x, [.., .., .., size], whose first `dim` elements turn by angles that broadcast to it.  import_rotary.cpp
Value* rotated(Speller& s, Value* x, Value* cos, Value* sin, int64_t size, int64_t dim, bool interleaved);

/// `cache` with `update` along `axis` from start[sample] on; `start` may be null. What lies outside is left out.
Value* written_at(Speller& s, Value* cache, Value* update, Value* start, size_t axis);  // import_arranged.cpp

}  // namespace opfuse::onnx
