// What the fake driver puts into a tensor map, and the emulated copy engine takes out of it.
#pragma once

#include <cstdint>

#include "device/driver.hpp"

namespace opfuse::cuda {

struct EmulatedMap {
  static constexpr uint32_t kMagic = 0x7e5043a9;
  uint32_t magic = kMagic;
  uint32_t sizes[5] = {};
  uint64_t address = 0;
  uint64_t strides[5] = {};  ///< bytes; [0] is an element's
  uint32_t box[5] = {};      ///< of an image: channels, pixels
  int16_t low[3] = {}, high[3] = {};
  uint8_t steps[5] = {};
  uint8_t rank = 0, image = 0;
};
static_assert(sizeof(EmulatedMap) <= sizeof(CuTensorMap));

}  // namespace opfuse::cuda
