// The C header of a standalone model.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/artifact.hpp"

namespace opfuse {

/// C99, and C++. `launches`: how many the list in the object has.
std::string header_text(const Artifact& artifact, const std::string& name, int64_t launches);

}  // namespace opfuse
