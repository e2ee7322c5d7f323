// What writes the skeletons of cuda/skeletons.hpp, by their names. Each writes the body of a kernel from its stage and
// its schedule.
#pragma once

#include <span>

#include "cuda/stage.hpp"

namespace opfuse::cuda {

void emit_rows(Kernel& k);
void emit_scatter(Kernel& k);
void emit_attention_tma(Kernel& k);
void emit_attention_mma(Kernel& k);
void emit_attention(Kernel& k);
void emit_tiles(Kernel& k);
void emit_window_rows(Kernel& k);
void emit_depthwise(Kernel& k);
void emit_mma(Kernel& k);
void emit_wgmma(Kernel& k);
void emit_tma(Kernel& k);

struct Emitter {
  std::string_view skeleton;
  void (*emit)(Kernel&);
};
std::span<const Emitter> emitters();

/// By the name that the kernel's schedule has.
void emit_kernel(Kernel& k);

}  // namespace opfuse::cuda
