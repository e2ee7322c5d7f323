// Chooses the skeleton: the schedule says which one was meant.
#include "base/fail.hpp"
#include "codegen/cpu/skeletons.hpp"

namespace opfuse::cpu {

void emit_kernel(Kernel& k) { emit_generic(k); }

}  // namespace opfuse::cpu
