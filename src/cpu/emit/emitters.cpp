// The table of emitters. A test holds it against what skeletons call themselves: neither has a name that the other
// lacks.
#include "cpu/emit/emitters.hpp"

#include "base/fail.hpp"

namespace opfuse::cpu {

std::span<const Emitter> emitters() {
#define OPFUSE_SKELETON(name) {#name, emit_##name},
#define OPFUSE_SKELETON_AGAIN(form)
  static constexpr Emitter kAll[] = {
#include "cpu/skeletons.def"
  };
#undef OPFUSE_SKELETON
#undef OPFUSE_SKELETON_AGAIN
  return kAll;
}

void emit_kernel(Kernel& k) {
  for (const Emitter& emitter : emitters())
    if (emitter.skeleton == k.spec.schedule.skeleton) return emitter.emit(k);
  throw fail(E::codegen_failed, "no emitter is named '{}'", k.spec.schedule.skeleton);
}

}  // namespace opfuse::cpu
