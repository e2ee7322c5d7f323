// A GPU beside the host: the pieces that were placed there are launches of one program.
#pragma once

#include "runtime/placed_device.hpp"

namespace opfuse {

/// E::no_device where its driver cannot be opened.
std::unique_ptr<PlacedDevice> open_gpu(const ArtifactDevice& device);

}  // namespace opfuse
