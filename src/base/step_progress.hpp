// Progress of long work.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace opfuse {

/// Called with (step, done, total); total 0 when unknown.
using StepProgress = std::function<void(const std::string& step, size_t done, size_t total)>;

}  // namespace opfuse
