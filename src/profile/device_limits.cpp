#include "profile/device_limits.hpp"

#include <algorithm>
#include <limits>

#include "device/driver.hpp"
#include "runtime/device_handles.hpp"

namespace opfuse {

MachineLimits measure_device_limits(const std::string& target) {
  const cuda::Driver& d = cuda::driver_for(target);
  const DeviceContext context(d, 0);
  const InContext here(context);
  // far more than the last level cache holds; the emulated device is the host
  const size_t bytes = target == "cuda:emulated" ? size_t{8} << 20 : size_t{512} << 20;
  const DeviceMemory from(d, bytes), to(d, bytes);
  DeviceStream stream(d);
  DeviceEvent begin(d), end(d);
  d.check(d.cuStreamCreate(stream.slot(), 1), "making a stream");
  d.check(d.cuEventCreate(begin.slot(), 0), "making an event");
  d.check(d.cuEventCreate(end.slot(), 0), "making an event");
  double best = 0;
  for (int round = 0; round < 10; ++round) {
    float ms = 0;
    d.check(d.cuEventRecord(begin.get(), stream.get()), "recording an event");
    d.check(d.cuMemcpyDtoDAsync_v2(to.address(), from.address(), bytes, stream.get()), "copying on the device");
    d.check(d.cuEventRecord(end.get(), stream.get()), "recording an event");
    d.check(d.cuStreamSynchronize(stream.get()), "copying on the device");
    d.check(d.cuEventElapsedTime(&ms, begin.get(), end.get()), "reading the time of a copy");
    if (ms > 0) best = std::max(best, 2e-6 * static_cast<double>(bytes) / static_cast<double>(ms));
  }
  MachineLimits limits;
  limits.reads = {{std::numeric_limits<int64_t>::max(), best}};
  return limits;
}

}  // namespace opfuse
