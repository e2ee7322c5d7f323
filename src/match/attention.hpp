// Scaled dot-product attention as one composite: softmax(f(q k)) v with f scaling and masking, whatever spelling it
// had.
#pragma once

#include <optional>

#include "match/pattern.hpp"

namespace opfuse {

inline constexpr const char* kAttention = "attention";
inline constexpr const char* kRotaryEmbedding = "rotary_embedding";
inline constexpr const char* kInProjection = "mha_in_projection";

/// Operands of an attention composite by their role. `k` is what the first product reads: the keys may be transposed.
struct AttentionParts {
  Value* q = nullptr;
  Value* k = nullptr;
  Value* v = nullptr;
};
/// Nothing when the node is not an attention composite.
std::optional<AttentionParts> attention_parts(const Node& node);

/// The value that `value` is a rearranged part, a repeated, scaled or rotated copy of: through reshape, transpose,
/// slice, split, expand, tile, gather by constants, products with scalars, and rotary embeddings.
Value* movement_source(Value* value);

}  // namespace opfuse
