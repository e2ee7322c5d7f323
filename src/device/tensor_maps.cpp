// Tiles of both kinds lie as rows of 128 bytes in the swizzle of 128; what is outside of a tensor is zero.
#include "device/tensor_maps.hpp"

#include <fmt/format.h>

#include "base/fail.hpp"
#include "tensor/tf32.hpp"

namespace opfuse::cuda {
namespace {

constexpr int kNoInterleave = 0, kPromote128 = 2, kZeros = 0;  // of cuda.h

int type_of(DType dtype) {
  if (dtype == kTf32) return 7;  // f32: rounded where it was stored, bytes are copied
  switch (dtype) {
    case DType::f16:
      return 6;
    case DType::f32:
      return 7;
    case DType::bf16:
      return 9;
    default:
      throw fail(E::codegen_failed, "tensor maps of {} are not made", name_of(dtype));
  }
}

template <class To>
std::vector<To> cast(const std::vector<int64_t>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

CuTensorMap encode(const Driver& driver, const TensorMap& map, CuPointer address, const SymbolValues& symbols) {
  std::vector<unsigned long long> sizes, strides;
  for (const Dim& d : map.sizes) sizes.push_back(static_cast<unsigned long long>(d.evaluate(symbols)));
  for (const Dim& d : map.strides) strides.push_back(static_cast<unsigned long long>(d.evaluate(symbols)));
  const auto rank = static_cast<unsigned>(sizes.size());
  auto* memory = reinterpret_cast<void*>(static_cast<uintptr_t>(address + static_cast<CuPointer>(map.offset)));
  CuTensorMap encoded{};
  const std::vector<unsigned> box = cast<unsigned>(map.box);
  std::vector<unsigned> steps = cast<unsigned>(map.steps);
  steps.resize(rank, 1);
  const CuResult result =
      map.image()
          ? driver.cuTensorMapEncodeIm2col(&encoded, type_of(map.dtype), rank, memory, sizes.data(), strides.data(),
                                           cast<int>(map.low).data(), cast<int>(map.high).data(), box.at(0), box.at(1),
                                           steps.data(), kNoInterleave, kSwizzle128, kPromote128, kZeros)
          : driver.cuTensorMapEncodeTiled(&encoded, type_of(map.dtype), rank, memory, sizes.data(), strides.data(),
                                          box.data(), steps.data(), kNoInterleave, kSwizzle128, kPromote128, kZeros);
  driver.check(result, "describing an operand of the copy engine");
  return encoded;
}

}  // namespace opfuse::cuda
