#include "runtime/device_handles.hpp"

#include <algorithm>

#include "base/fail.hpp"

namespace opfuse {
namespace {
constexpr cuda::CuResult kOutOfMemory = 2;
}  // namespace

DeviceContext::DeviceContext(const cuda::Driver& driver, int device) : driver_(driver) {
  int count = 0;
  driver_.check(driver_.cuDeviceGetCount(&count), "counting devices");
  if (device < 0 || device >= count)
    throw fail(E::no_device, "cuda: there is no device {}: this process sees {}, numbered from 0", device, count)
        .hint("name another in ContextOptions::device (Python: device=...); CUDA_VISIBLE_DEVICES hides devices");
  driver_.check(driver_.cuDeviceGet(&device_, device), "opening a device");
  driver_.check(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "making a context");
}

DeviceMemory::DeviceMemory(const cuda::Driver& driver, size_t bytes) : driver_(&driver), bytes_(bytes) {
  const cuda::CuResult result = driver.cuMemAlloc_v2(&address_, std::max<size_t>(bytes, 1));
  if (result == kOutOfMemory)
    throw fail(E::out_of_memory, "{} bytes of device memory could not be had: {}", bytes, driver.words(result))
        .hint("end other programs that use the GPU (nvidia-smi lists them), or run smaller batches and fewer contexts");
  driver.check(result, fmt::format("allocating {} bytes", bytes));
}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  if (this == &other) return *this;
  release();
  driver_ = std::exchange(other.driver_, nullptr);
  address_ = std::exchange(other.address_, 0);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void DeviceMemory::release() {
  if (address_) driver_->cuMemFree_v2(address_);
  address_ = 0;
}

}  // namespace opfuse
