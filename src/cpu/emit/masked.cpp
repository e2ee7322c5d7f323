#include "cpu/emit/masked.hpp"

#include <numeric>

namespace opfuse::cpu {
namespace {

/// Which lanes are on; nothing where that is known only when the kernel runs.
std::optional<std::vector<bool>> known_lanes(Value* mask) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(mask);
  std::vector<bool> on;
  for (int lane = 0; lane < width_of(mask); ++lane) {
    const auto* bit = constant ? constant->getAggregateElement(static_cast<unsigned>(lane)) : nullptr;
    if (!bit || !llvm::isa<llvm::ConstantInt>(bit)) return std::nullopt;
    on.push_back(bit->isOneValue());
  }
  return on;
}

void store_piece(Kernel& k, Value* value, Value* to, llvm::Align align, int first, int lanes) {
  llvm::Type* element = llvm::cast<llvm::FixedVectorType>(value->getType())->getElementType();
  Value* at = k.b.CreateConstInBoundsGEP1_64(element, to, static_cast<uint64_t>(first));
  std::vector<int> own(static_cast<size_t>(lanes));
  std::iota(own.begin(), own.end(), first);
  Value* piece =
      lanes == 1 ? k.b.CreateExtractElement(value, static_cast<uint64_t>(first)) : k.b.CreateShuffleVector(value, own);
  k.b.CreateAlignedStore(piece, at, align);
}

}  // namespace

/// Halves until they fit a register. Where LLVM 19 itself splits a vector for AVX2 (eight elements of 64 bits), a half
/// whose lanes are all off by a constant, and others by a condition, is loaded as if they were on: a border of integers
/// was what lay beside the array.
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

/// Lanes that are known when compiling go in pieces of 4, 2 and 1: AVX2's masked stores (vmaskmov) are microcode on
/// Zen, 12 cycles for what pieces take two or three, and of elements of 8 and 16 bits there are none.
void masked_store(Kernel& k, Value* value, Value* to, llvm::Align align, Value* mask) {
  const auto on = known_lanes(mask);
  if (!on || k.target.has("avx512f")) {
    k.b.CreateMaskedStore(value, to, align, mask);
    return;
  }
  const auto lanes = static_cast<int>(on->size());
  for (int first = 0; first < lanes;) {
    int run = 0;
    while (first + run < lanes && (*on)[static_cast<size_t>(first + run)]) ++run;
    int piece = 1;
    while (2 * piece <= run) piece *= 2;
    if (run > 0) store_piece(k, value, to, align, first, piece);
    first += piece;
  }
}

}  // namespace opfuse::cpu
