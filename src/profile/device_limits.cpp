#include "profile/device_limits.hpp"

#include <algorithm>
#include <limits>

#include "device/driver.hpp"
#include "runtime/device.hpp"

namespace opfuse {

MachineLimits measure_device_limits(const std::string& target) {
  const cuda::Driver& d = cuda::driver_for(target);
  cuda::CuDevice device = 0;
  cuda::CuContext context = nullptr;
  d.check(d.cuDeviceGet(&device, 0), "opening the first device");
  d.check(d.cuDevicePrimaryCtxRetain(&context, device), "making a context");
  d.check(d.cuCtxSetCurrent(context), "choosing the context");
  // far more than the last level cache holds; the emulated device is the host
  const size_t bytes = target == "cuda:emulated" ? size_t{8} << 20 : size_t{512} << 20;
  const DeviceMemory from(d, bytes), to(d, bytes);
  cuda::CuStream stream = nullptr;
  cuda::CuEvent begin = nullptr, end = nullptr;
  d.check(d.cuStreamCreate(&stream, 1), "making a stream");
  d.check(d.cuEventCreate(&begin, 0), "making an event");
  d.check(d.cuEventCreate(&end, 0), "making an event");
  double best = 0;
  for (int round = 0; round < 10; ++round) {
    float ms = 0;
    d.check(d.cuEventRecord(begin, stream), "recording an event");
    d.check(d.cuMemcpyDtoDAsync_v2(to.address(), from.address(), bytes, stream), "copying on the device");
    d.check(d.cuEventRecord(end, stream), "recording an event");
    d.check(d.cuStreamSynchronize(stream), "copying on the device");
    d.check(d.cuEventElapsedTime(&ms, begin, end), "reading the time of a copy");
    if (ms > 0) best = std::max(best, 2e-6 * static_cast<double>(bytes) / static_cast<double>(ms));
  }
  d.cuEventDestroy_v2(begin);
  d.cuEventDestroy_v2(end);
  d.cuStreamDestroy_v2(stream);
  MachineLimits limits;
  limits.reads = {{std::numeric_limits<int64_t>::max(), best}};
  return limits;
}

}  // namespace opfuse
