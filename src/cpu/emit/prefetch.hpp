// Asking for a cache line before it is needed. Any address may be asked for.
#pragma once

#include "cpu/emit/kernel.hpp"

namespace opfuse::cpu {

enum class Ahead { near, far, write };  ///< to L1, to L2, to L1 for a store

void prefetch(Kernel& k, Value* address, Ahead ahead);

}  // namespace opfuse::cpu
