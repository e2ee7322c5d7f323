// Devices of an artifact as sections of their own: what a plug-in is called, or the program of a GPU.
#pragma once

#include "runtime/artifact.hpp"

namespace opfuse {

std::vector<uint8_t> device_section(const ArtifactDevice& device);
/// Its program points into the bytes, which must outlive it. E::bad_file.
ArtifactDevice device_of(std::span<const uint8_t> section);

}  // namespace opfuse
