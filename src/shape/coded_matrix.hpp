// Constant matrices behind DequantizeLinear, as the spellings of exporters have them, and as kernels read them
// (ops/dequantize_words.hpp).
//
//     codes [N, K] -- DequantizeLinear, blocks along K -- Transpose --             of a MatMul
//     codes [N, K / B, B] -- DequantizeLinear -- Reshape [N, K] -- Transpose --    codes [N K / B, B] likewise
//     codes [K, N] -- DequantizeLinear, a scale per column --
#pragma once

#include <optional>
#include <variant>

#include "base/decline.hpp"
#include "ir/graph.hpp"

namespace opfuse {

struct PackedMatrix {
  Tensor words, scales;
  std::optional<Tensor> zeros;
  int64_t depth = 0, bits = 0, block = 0, zero = 0;
  int64_t bytes() const;
};

/// The DequantizeLinear of a constant that a matrix comes from, by transposes and reshapes alone; null: none.
const Node* dequantizer_of(const Value* matrix);

/// `matrix` is [K, N], or [N, K] with `transposed`. Declined: "blocks" that are no whole words, "scales" that no block
/// of rows shares, "types" and "rank" of other kinds.
std::variant<PackedMatrix, Decline> pack_matrix(const Value* matrix, bool transposed);

}  // namespace opfuse
