// Measured launches of a model: where the time goes, kernel by kernel, against what the machine allows.
#pragma once

#include <string>
#include <vector>

#include "opfuse/runtime.hpp"
#include "profile/roofline.hpp"
#include "tensor/dim.hpp"

namespace opfuse {

struct ProfiledLaunch {
  LaunchInfo launch;
  double ms = 0;  ///< mean over the runs, so that the launches sum to the mean latency
  Roofline point;
  double bytes() const { return launch.bytes_read + launch.bytes_written; }
};

struct LaunchProfile {
  std::vector<ProfiledLaunch> rows;
  double sum_ms = 0;       ///< of the rows
  double recorded_ms = 0;  ///< mean latency while recording
  double plain_ms = 0;     ///< mean latency without recording
  size_t runs = 0;
  MachineLimits limits;
  SymbolValues dims;
  SymbolValues variant;  ///< that runs; empty: the kernels for all sizes
  std::string target;
};

}  // namespace opfuse
