// The table of emitters. A test holds it against the table of skeletons: neither lists what the other lacks.
#include "cpu/emit/emitters.hpp"

#include "base/fail.hpp"

namespace opfuse::cpu {

std::span<const Emitter> emitters() {
  static constexpr Emitter kAll[] = {{"scatter", emit_scatter}, {"attention", emit_attention},
                                     {"chain", emit_chain},     {"winograd", emit_winograd},
                                     {"pixels", emit_pixels},   {"contraction", emit_contraction},
                                     {"window", emit_window},   {"generic", emit_generic}};
  return kAll;
}

void emit_kernel(Kernel& k) {
  for (const Emitter& emitter : emitters())
    if (emitter.skeleton == k.spec.schedule.skeleton) return emitter.emit(k);
  throw fail(E::codegen_failed, "no emitter is named '{}'", k.spec.schedule.skeleton);
}

}  // namespace opfuse::cpu
