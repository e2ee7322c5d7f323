// Contraction on tensor cores by groups of four warps (wgmma, sm_90a): f16, bf16 or tf32 operands straight from shared
// memory, fp32 sums; convolutions as implicit GEMM.
//
//   shared.a [kStages][kTileM][128 bytes], shared.b [kStages][kTileN][128 bytes]      k is contiguous; the unit's
//   swizzle of 128 bytes is that of place<8>
//   a ring of stages: while step t is multiplied, copies for step t + kStages - 1 are given out
//   each group: 64 x kTileN sums
//   epilogue once, through the ring's memory
//
// A stage is free when all groups' products of it have ended: each waits for its own before the block's barrier. Copies
// are made visible to the unit by the thread that waited for them (async_fence).
#include <fmt/format.h>

#include "cuda/emitters.hpp"
#include "cuda/mma_tiles.hpp"
#include "cuda/schedules.hpp"

namespace opfuse::cuda {
namespace {

constexpr int64_t kChunks = 8, kStagingPad = 4;  // 128 bytes of k a step

class Wgmma : MmaTiles {
 public:
  explicit Wgmma(Kernel& k) : Wgmma(k, typed<WgmmaSchedule>(k.spec.schedule)) {}

  void emit() {
    declare_constants();
    StageText::Point point{Env(static_cast<size_t>(s_.axis_count()), Dim(0))};
    k_.line("Shared& shared = *reinterpret_cast<Shared*>(launch_shared_1024());");
    frame_.place(TileFrame::First::columns, point);  // neighbouring blocks share rows of A
    k_.line("const int group = (int)threadIdx.x / 128;  // has rows group * 64 and on");
    declare_fill(point);
    k_.line("float sum[kTileN / 2] = {};");
    k_.line("#pragma unroll");
    k_.open("for (int t = 0; t < kStages - 1; ++t)");
    k_.line("if (t < steps) fill(t, t);");
    if (copies_) k_.line("copy_commit();");
    k_.close();
    k_.line("int stage = 0;");
    k_.line("#pragma unroll 1");  // ptxas would write all steps of a short loop
    k_.open(fmt::format("for ({0} t = 0; t < steps; ++t)", k_.index_type()));
    if (copies_) k_.line("copy_wait<kStages - 2>();");
    k_.line("async_fence();");
    k_.line("product_wait<0>();");
    k_.line("__syncthreads();");
    multiply();
    k_.line("const int free = stage == 0 ? kStages - 1 : stage - 1;  // step t - 1 was there");
    k_.line("if (t + kStages - 1 < steps) fill(t + kStages - 1, free);");
    if (copies_) k_.line("copy_commit();");
    k_.line("stage = stage == kStages - 1 ? 0 : stage + 1;");
    k_.close();
    k_.line("product_wait<0>();");
    epilogue(point);
  }

 private:
  WgmmaSchedule schedule_;

  Wgmma(Kernel& k, const WgmmaSchedule& s)
      : MmaTiles(k, {s.mma_m, s.mma_n, depth_of(k), s.mma_m * 2, s.copy_a > 0, s.copy_b > 0}), schedule_(s) {}

  std::string product() const { return fmt::format("product_{}_{}", name_of(type_), schedule_.mma_n); }

  void declare_constants() {
    k_.constant("kTileM", frame_.tile_m);
    k_.constant("kTileN", frame_.tile_n);
    k_.constant("kTileK", frame_.tile_k);
    k_.constant("kChunks", kChunks);
    k_.constant("kStages", schedule_.stages);
    k_.constant("kStagingPad", kStagingPad);
    k_.constant("kVector", schedule_.vector);
    k_.constant("kBlock", k_.block);
    k_.declare_type(
        fmt::format("struct Shared {{\n"
                    "  uint4 a[kStages][kTileM * kChunks];  // 16 bytes, {0} k, at place(row, k / {0})\n"
                    "  uint4 b[kStages][kTileN * kChunks];\n"
                    "}};\n",
                    chunk_));
    const int64_t ring = schedule_.stages * (frame_.tile_m + frame_.tile_n) * kChunks * 16;
    const int64_t staging = k_.block / 32 * 16 * (frame_.tile_n + kStagingPad) * 4;
    k_.hold(std::max(ring, staging), std::max(ring, staging));
    k_.resident = 2;
    k_.constant("kResident", k_.resident);
    k_.grid = frame_.blocks();
    for (const char* helper : {"launch_shared_1024", "place", "async_fence", "operand_rows128", "product_begin",
                               "product_commit", "product_wait"})
      k_.use(helper);
    k_.use(product());
    if (copies_)
      for (const char* helper : {"copy_16", "copy_commit", "copy_wait"}) k_.use(helper);
  }

  /// A product's k are 32 bytes in a row: 2 in a descriptor.
  void multiply() {
    k_.line("const unsigned long long a = operand_rows128(&shared.a[stage][group * 64 * kChunks]);");
    k_.line("const unsigned long long b = operand_rows128(&shared.b[stage][0]);");
    k_.line("product_begin();");
    k_.line("#pragma unroll");
    k_.line(fmt::format("for (int k = 0; k < kTileK / {}; ++k) {}(sum, a + k * 2, b + k * 2);", product_depth(),
                        product()));
    k_.line("product_commit();");
  }

  void epilogue(const StageText::Point& point) {
    k_.line("__syncthreads();  // the ring becomes each warp's staging of 16 rows");
    k_.line("const int lane = (int)threadIdx.x % 32;");
    k_.line("const int warp = (int)threadIdx.x / 32;");
    k_.line("auto* staging = reinterpret_cast<float(*)[kTileN + kStagingPad]>(launch_shared_1024()) + warp * 16;");
    k_.line("#pragma unroll");
    k_.line("for (int i = 0; i < kTileN / 2; ++i)");
    k_.line("  staging[lane / 4 + i / 2 % 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2] = sum[i];");
    k_.line("__syncwarp();");
    k_.open("for (int e = lane; e < 16 * kTileN / kVector; e += 32)");
    k_.line("const int row = e / (kTileN / kVector);");
    k_.line("const int column = e % (kTileN / kVector) * kVector;");
    store(point, "m0 + warp * 16 + row", "n0 + column", schedule_.vector);
    k_.close();
  }
};

}  // namespace

void emit_wgmma(Kernel& k) { Wgmma(k).emit(); }

}  // namespace opfuse::cuda
