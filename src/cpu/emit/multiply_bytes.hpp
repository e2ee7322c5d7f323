// Products of bytes, four at a time.
#pragma once

#include "cpu/emit/kernel.hpp"

namespace opfuse::cpu {

/// A byte of 1 in each place of a word: products with it are sums.
inline constexpr uint32_t kEveryByte = 0x01010101;

/// sums + x[4i] w[4i] + .. + x[4i + 3] w[4i + 3] in i32 (vpdpbusd, never the saturating form): x of u8, w of i8.
/// Vectors of the target, as words.
Value* multiply_bytes(Kernel& k, Value* sums, Value* x, Value* w);

}  // namespace opfuse::cpu
