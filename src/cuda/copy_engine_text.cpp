#include "cuda/copy_engine_text.hpp"

#include <fmt/format.h>

namespace opfuse::cuda {

void begin_barriers(Kernel& k, const std::string& full, const std::string& more) {
  k.open("if (threadIdx.x == 0)");
  if (!more.empty()) k.line(more);
  k.open("for (int s = 0; s < kStages; ++s)");
  k.line(fmt::format("barrier_init(&shared.full[s], {});", full));
  k.line("barrier_init(&shared.empty[s], kGroups * 4);  // a warp each");
  k.close();
  k.line("barrier_init_visible();");
  k.close();
  k.line("__syncthreads();");
}

void next_stage(Kernel& k) { k.line("if (++stage == kStages) stage = 0, phase ^= 1;"); }

void store_parts(Kernel& k, const std::string& columns, const std::function<void()>& store) {
  k.line("#pragma unroll");
  k.open(fmt::format("for (int part = 0; part < {} / kPart; ++part)", columns));
  k.line("#pragma unroll");
  k.line("for (int i = 0; i < kPart / 2; ++i)");
  k.line("  staging[lane / 4 + i / 2 % 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2] = sum[part * (kPart / 2) + i];");
  k.line("__syncwarp();");
  k.open("for (int e = lane; e < 16 * kPart / kVector; e += 32)");
  k.line("const int row = e / (kPart / kVector);");
  k.line("const int column = e % (kPart / kVector) * kVector;");
  store();
  k.close();
  k.line("__syncwarp();");
  k.close();
}

}  // namespace opfuse::cuda
