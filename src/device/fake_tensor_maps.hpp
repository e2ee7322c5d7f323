// The fake driver's functions for tensor maps: they refuse what NVIDIA's refuses.
#pragma once

#include "device/driver.hpp"

namespace opfuse::cuda {

CuResult fake_tensor_map_tiled(CuTensorMap* map, int type, unsigned rank, void* address,
                               const unsigned long long* sizes, const unsigned long long* strides, const unsigned* box,
                               const unsigned* steps, int interleave, int swizzle, int promotion, int fill);
CuResult fake_tensor_map_image(CuTensorMap* map, int type, unsigned rank, void* address,
                               const unsigned long long* sizes, const unsigned long long* strides, const int* low,
                               const int* high, unsigned channels, unsigned pixels, const unsigned* steps,
                               int interleave, int swizzle, int promotion, int fill);

}  // namespace opfuse::cuda
