// Halves until they fit a register. Where LLVM 19 itself splits a vector for AVX2 (eight elements of 64 bits), a half
// whose lanes are all off by a constant, and others by a condition, is loaded as if they were on: a border of integers
// was what lay beside the array.
#include "cpu/emit/masked_load.hpp"

#include <numeric>

namespace opfuse::cpu {

Value* masked_load(Kernel& k, llvm::Type* vector, Value* from, llvm::Align align, Value* mask) {
  llvm::Type* element = llvm::cast<llvm::FixedVectorType>(vector)->getElementType();
  const int lanes = width_of(mask), half = lanes / 2;
  const auto bytes = static_cast<int64_t>(vector->getPrimitiveSizeInBits().getFixedValue() / 8);
  if (bytes <= k.target.vector_bytes || k.target.has("avx512f"))
    return k.b.CreateMaskedLoad(vector, from, align, mask, k.zero(vector));
  Value* parts[2];
  for (int i = 0; i < 2; ++i) {
    std::vector<int> own(static_cast<size_t>(half));
    std::iota(own.begin(), own.end(), i * half);
    Value* at = i == 0 ? from : k.b.CreateConstInBoundsGEP1_64(element, from, static_cast<uint64_t>(half));
    parts[i] = masked_load(k, k.lanes(element, half), at, align, k.b.CreateShuffleVector(mask, own));
  }
  std::vector<int> all(static_cast<size_t>(lanes));
  std::iota(all.begin(), all.end(), 0);
  return k.b.CreateShuffleVector(parts[0], parts[1], all);
}

}  // namespace opfuse::cpu
