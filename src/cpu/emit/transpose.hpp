// Square transposition in registers.
#pragma once

#include <vector>

#include "cpu/emit/kernel.hpp"

namespace opfuse::cpu {

/// As many vectors as each has lanes (a power of two): lane j of vector i becomes lane i of vector j.
std::vector<Value*> transpose(Kernel& k, std::vector<Value*> vectors);

}  // namespace opfuse::cpu
