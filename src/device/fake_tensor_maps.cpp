// Limits are those of the driver API's reference (cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col): read there, not
// seen on a device.
#include "device/fake_tensor_maps.hpp"

#include <cstring>

#include "device/emulated_map.hpp"
#include "device/tensor_maps.hpp"

namespace opfuse::cuda {
namespace {

constexpr CuResult kEncoded = 0, kRefused = 1;  // CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE

size_t bytes_of(int type) { return type == 6 || type == 9 ? 2 : type == 7 ? 4 : 0; }  // f16, bf16; f32

/// What both kinds have: nullptr-like magic 0 where the driver refuses.
EmulatedMap common(int type, unsigned rank, void* address, const unsigned long long* sizes,
                   const unsigned long long* strides, const unsigned* steps, int interleave, int swizzle, int fill) {
  EmulatedMap map;
  map.magic = 0;
  const size_t element = bytes_of(type);
  map.address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address));
  if (element == 0 || rank == 0 || rank > 5 || map.address % 16 || interleave || swizzle != kSwizzle128 || fill)
    return map;
  map.rank = static_cast<uint8_t>(rank);
  map.strides[0] = element;
  for (unsigned d = 0; d < rank; ++d) {
    if (sizes[d] == 0 || sizes[d] > uint64_t{1} << 32 || steps[d] == 0 || steps[d] > 8) return map;
    if (d > 0 && (strides[d - 1] % 16 || strides[d - 1] >= uint64_t{1} << 40)) return map;
    map.sizes[d] = static_cast<uint32_t>(sizes[d]);
    map.steps[d] = static_cast<uint8_t>(steps[d]);
    if (d > 0) map.strides[d] = strides[d - 1];
  }
  map.magic = EmulatedMap::kMagic;
  return map;
}

CuResult give(CuTensorMap* to, const EmulatedMap& map) {
  if (map.magic != EmulatedMap::kMagic) return kRefused;
  *to = CuTensorMap{};
  std::memcpy(to, &map, sizeof map);
  return kEncoded;
}

}  // namespace

CuResult fake_tensor_map_tiled(CuTensorMap* to, int type, unsigned rank, void* address, const unsigned long long* sizes,
                               const unsigned long long* strides, const unsigned* box, const unsigned* steps,
                               int interleave, int swizzle, int, int fill) {
  EmulatedMap map = common(type, rank, address, sizes, strides, steps, interleave, swizzle, fill);
  if (map.magic == 0 || box[0] * map.strides[0] > 128) return kRefused;
  for (unsigned d = 0; d < rank; ++d) {
    if (box[d] == 0 || box[d] > 256) return kRefused;
    map.box[d] = box[d];
  }
  return give(to, map);
}

CuResult fake_tensor_map_image(CuTensorMap* to, int type, unsigned rank, void* address, const unsigned long long* sizes,
                               const unsigned long long* strides, const int* low, const int* high, unsigned channels,
                               unsigned pixels, const unsigned* steps, int interleave, int swizzle, int, int fill) {
  if (rank < 3) return kRefused;
  EmulatedMap map = common(type, rank, address, sizes, strides, steps, interleave, swizzle, fill);
  if (map.magic == 0 || channels == 0 || channels > 256 || pixels == 0 || pixels > 1024) return kRefused;
  if (channels * map.strides[0] > 128) return kRefused;
  const int most = rank == 3 ? 1 << 15 : rank == 4 ? 1 << 7 : 1 << 4;
  for (unsigned d = 0; d + 2 < rank; ++d) {
    if (low[d] < -most || low[d] >= most || high[d] < -most || high[d] >= most) return kRefused;
    if (static_cast<int64_t>(map.sizes[d + 1]) + high[d] - low[d] <= 0) return kRefused;
    map.low[d] = static_cast<int16_t>(low[d]);
    map.high[d] = static_cast<int16_t>(high[d]);
  }
  map.image = 1;
  map.box[0] = channels;
  map.box[1] = pixels;
  return give(to, map);
}

}  // namespace opfuse::cuda
