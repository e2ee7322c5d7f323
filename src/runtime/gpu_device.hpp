// A GPU beside the host: the pieces that were placed there are launches of one program.
#pragma once

#include "runtime/placed_device.hpp"

namespace opfuse {

/// Opened by the first run, which throws E::no_device where its driver cannot be had.
std::unique_ptr<PlacedDevice> gpu_device(const ArtifactDevice& device);

}  // namespace opfuse
