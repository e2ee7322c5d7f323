// Where views start in the memory of their roots.
#pragma once

#include "program/program.hpp"

namespace opfuse {

/// Of every buffer, in elements, in one walk (origin_in_root is of one). After assign_strides.
std::vector<Dim> origins_in_roots(const Program& program);

}  // namespace opfuse
