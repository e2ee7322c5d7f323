// Chooses the skeleton: the schedule says which one was meant.
#include "base/fail.hpp"
#include "codegen/cpu/skeletons.hpp"

namespace opfuse::cpu {

void emit_kernel(Kernel& k) {
  const Schedule& s = k.spec.schedule;
  if (s.get("nv", 0) > 0) return emit_contraction(k);
  emit_generic(k);
}

}  // namespace opfuse::cpu
