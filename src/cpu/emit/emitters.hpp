// What emits the skeletons of cpu/skeletons.def, by their names. Each emits the whole body of a kernel from its region
// and schedule and sets Kernel::parts.
#pragma once

#include <span>

#include "cpu/emit/stage.hpp"

namespace opfuse::cpu {

#define OPFUSE_SKELETON(name) void emit_##name(Kernel& k);
#define OPFUSE_SKELETON_AGAIN(form)
#include "cpu/skeletons.def"
#undef OPFUSE_SKELETON
#undef OPFUSE_SKELETON_AGAIN

struct Emitter {
  std::string_view skeleton;
  void (*emit)(Kernel&);
};
std::span<const Emitter> emitters();

/// By the name that the kernel's schedule has.
void emit_kernel(Kernel& k);

}  // namespace opfuse::cpu
