// What memory of a GPU can do, measured: the roof of reports on GPU executables.
#pragma once

#include <string>

#include "profile/machine_limits.hpp"

namespace opfuse {

/// Copies within device memory, read and write counted, best of several; E::no_device without one. Arithmetic limits
/// are not measured: fma_gflops stays 0.
MachineLimits measure_device_limits(const std::string& target);

}  // namespace opfuse
