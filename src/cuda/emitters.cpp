// The table of emitters. A test holds it against the table of skeletons: neither lists what the other lacks.
#include "cuda/emitters.hpp"

#include "base/fail.hpp"

namespace opfuse::cuda {

std::span<const Emitter> emitters() {
  static constexpr Emitter kAll[] = {{"scatter", emit_scatter},
                                     {"attention_tma", emit_attention_tma},
                                     {"attention_mma", emit_attention_mma},
                                     {"attention", emit_attention},
                                     {"tma", emit_tma},
                                     {"wgmma", emit_wgmma},
                                     {"mma", emit_mma},
                                     {"tiles", emit_tiles},
                                     {"window_rows", emit_window_rows},
                                     {"depthwise", emit_depthwise},
                                     {"rows", emit_rows}};
  return kAll;
}

void emit_kernel(Kernel& k) {
  for (const Emitter& emitter : emitters())
    if (emitter.skeleton == k.spec.schedule.skeleton) return emitter.emit(k);
  throw fail(E::codegen_failed, "no emitter is named '{}'", k.spec.schedule.skeleton);
}

}  // namespace opfuse::cuda
