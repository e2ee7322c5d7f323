// The payload of a constant in text: splat, dense, hex. What they cannot say is data or file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tensor/tensor.hpp"

namespace opfuse {

/// "splat<0.5>", "dense<1,2,3>" (at most `max_elements`), or "hex<...>" for small tensors whose bits have
/// no number (NaN payloads); nothing for large ones.
std::optional<std::string> constant_text(const Tensor& tensor, size_t max_elements);

/// Stores the number `text` as element i; false when it is not a number of the tensor's dtype.
bool store_number(Tensor& tensor, int64_t i, std::string_view text);

/// Seeded values: reals in [-1, 1), signed integers in [-8, 8), unsigned in [0, 16), booleans 0 or 1.
Tensor random_constant(DType dtype, std::vector<int64_t> sizes, uint64_t seed);

}  // namespace opfuse
