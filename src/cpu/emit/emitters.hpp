// What emits the skeletons of cpu/skeletons.hpp, by their names. Each emits the whole body of a kernel from its region
// and schedule and sets Kernel::parts.
#pragma once

#include <span>

#include "cpu/emit/stage.hpp"

namespace opfuse::cpu {

void emit_generic(Kernel& k);
void emit_scatter(Kernel& k);
void emit_contraction(Kernel& k);
void emit_winograd(Kernel& k);
void emit_window(Kernel& k);
void emit_pixels(Kernel& k);
void emit_chain(Kernel& k);
void emit_attention(Kernel& k);

struct Emitter {
  std::string_view skeleton;
  void (*emit)(Kernel&);
};
std::span<const Emitter> emitters();

/// By the name that the kernel's schedule has.
void emit_kernel(Kernel& k);

}  // namespace opfuse::cpu
