// Tensor maps with an address, as the driver encodes them and kernels take them by value.
#pragma once

#include "device/driver.hpp"
#include "tensor/tensor_map.hpp"

namespace opfuse::cuda {

constexpr int kSwizzle128 = 3;  ///< CU_TENSOR_MAP_SWIZZLE_128B

/// Throws E::device_failed where the driver refuses it.
CuTensorMap encode(const Driver& driver, const TensorMap& map, CuPointer address, const SymbolValues& symbols);

}  // namespace opfuse::cuda
