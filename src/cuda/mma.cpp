// Contraction on tensor cores (mma.sync; f16, bf16 or tf32 operands, fp32 sums); convolutions as implicit GEMM:
//
//   shared.a [kStages][kTileM][kTileK], shared.b [kStages][kTileN][kTileK]      k is contiguous in both
//   a ring of stages: copies for step t + kStages - 1 are under way while step t is multiplied
//   each warp: kWarpM x kWarpN sums as fragments of 16 x 8, operands by ldmatrix
//   epilogue once: sums through the ring's memory, so that neighbouring threads store neighbouring channels, 16 bytes
//   each
//
// The 8 k of 16 bytes (4 of tf32) lie at a place that XORs their number with the row's (place): eight rows of one chunk
// are in all banks. Where an operand's k lies together in memory (channels last), tiles are filled by asynchronous
// copies of 16 bytes (mma_copies.hpp); elsewhere element by element, with whatever expression the operand is. Outside
// the problem tiles are zero.
#include <fmt/format.h>

#include "cuda/emitters.hpp"
#include "cuda/mma_tiles.hpp"
#include "cuda/schedules.hpp"

namespace opfuse::cuda {
namespace {

class Mma : MmaTiles {
 public:
  explicit Mma(Kernel& k) : Mma(k, typed<MmaSchedule>(k.spec.schedule)) {}

  void emit() {
    declare_constants();
    StageText::Point point{Env(static_cast<size_t>(s_.axis_count()), Dim(0))};
    place(point);
    declare_fill(point);
    k_.line("float sum[kFragmentsM][kFragmentsN][4] = {};");
    k_.line("#pragma unroll");
    k_.open("for (int t = 0; t < kStages - 1; ++t)");
    k_.line("if (t < steps) fill(t, t);");
    if (copies_) k_.line("copy_commit();");
    k_.close();
    if (gathers()) k_.line("#pragma unroll");
    k_.open(fmt::format("for ({0} t = 0; t < steps; t += kStages)", k_.index_type()));
    k_.line("#pragma unroll");
    k_.open("for (int stage = 0; stage < kStages; ++stage)");
    const Dim steps = ceil_div(frame_.k, Dim(frame_.tile_k));
    if (!steps.is_constant() || steps.value() % schedule_.stages != 0) k_.line("if (t + stage >= steps) break;");
    if (copies_) k_.line("copy_wait<kStages - 2>();");
    k_.line("__syncthreads();");
    k_.line("if (t + stage + kStages - 1 < steps) fill(t + stage + kStages - 1, (stage + kStages - 1) % kStages);");
    if (copies_) k_.line("copy_commit();");
    multiply();
    k_.close();
    k_.close();
    epilogue(point);
  }

 private:
  static constexpr int64_t kStagingPad = 4;
  MmaSchedule schedule_;

  Mma(Kernel& k, const MmaSchedule& s)
      : MmaTiles(k,
                 {s.mma_m, s.mma_n, s.mma_k, s.mma_m / s.warp * (s.mma_n / s.warp) * 32, s.copy_a > 0, s.copy_b > 0}),
        schedule_(s) {}

  void declare_constants() {
    const int64_t chunks = frame_.tile_k / chunk_, warp = schedule_.warp;
    k_.constant("kTileM", frame_.tile_m);
    k_.constant("kTileN", frame_.tile_n);
    k_.constant("kTileK", frame_.tile_k);
    k_.constant("kChunks", chunks);
    k_.constant("kStages", schedule_.stages);
    k_.constant("kWarpTile", warp);
    k_.constant("kWarpsN", frame_.tile_n / warp);
    k_.constant("kFragmentsM", warp / 16);
    k_.constant("kFragmentsN", warp / 8);
    k_.constant("kStagingPad", kStagingPad);
    k_.constant("kBlock", k_.block);
    k_.declare_type(
        fmt::format("struct Shared {{\n"
                    "  uint4 a[kStages][kTileM * kChunks];  // 16 bytes, {0} k, at place(row, k / {0})\n"
                    "  uint4 b[kStages][kTileN * kChunks];\n"
                    "}};\n",
                    chunk_));
    const int64_t ring = schedule_.stages * (frame_.tile_m + frame_.tile_n) * chunks * 16;
    const int64_t staging = k_.block / 32 * 16 * (warp + kStagingPad) * 4;
    k_.hold(std::max(ring, staging), std::max(ring, staging));
    k_.resident =
        ring > 48 << 10 ? 2 : 3;  // what shared memory has room for from sm_80 on; without it some tiles spill
    k_.constant("kResident", k_.resident);
    k_.use("launch_shared");
    k_.use("place");
    if (copies_)
      for (const char* helper : {"copy_16", "copy_commit", "copy_wait"}) k_.use(helper);
    k_.use("ldmatrix_x4");
    k_.use(fmt::format("mma_{}", name_of(type_)));
    k_.grid = frame_.blocks();
  }

  void place(StageText::Point& point) {
    k_.line("Shared& shared = *reinterpret_cast<Shared*>(launch_shared());");
    frame_.place(TileFrame::First::columns, point);  // neighbouring blocks share rows of A
    k_.line("const int lane = (int)threadIdx.x % 32;");
    k_.line("const int warp = (int)threadIdx.x / 32;");
    k_.line("const int warp_m = warp / kWarpsN * kWarpTile;");
    k_.line("const int warp_n = warp % kWarpsN * kWarpTile;");
    k_.line(fmt::format("int rows_a[kTileK / {0}], rows_b[kTileK / {0}];  // where this lane's rows of fragments lie",
                        product_depth()));
    k_.line("#pragma unroll");
    k_.open(fmt::format("for (int k = 0; k < kTileK / {}; ++k)", product_depth()));
    k_.line("rows_a[k] = place<kChunks>(warp_m + lane % 16, k * 2 + lane / 16);");
    k_.line("rows_b[k] = place<kChunks>(warp_n + lane % 8 + lane / 16 * 8, k * 2 + lane / 8 % 2);");
    k_.close();
  }

  void multiply() {
    k_.line("#pragma unroll");
    k_.open(fmt::format("for (int k = 0; k < kTileK / {}; ++k)", product_depth()));
    k_.line("unsigned int a[kFragmentsM][4];");
    k_.line("unsigned int b[kFragmentsN / 2][4];");
    k_.line("#pragma unroll");
    k_.line("for (int i = 0; i < kFragmentsM; ++i) ldmatrix_x4(a[i], &shared.a[stage][rows_a[k] + i * 16 * kChunks]);");
    k_.line("#pragma unroll");
    k_.line(
        "for (int j = 0; j < kFragmentsN / 2; ++j) ldmatrix_x4(b[j], &shared.b[stage][rows_b[k] + j * 16 * kChunks]);");
    k_.line("#pragma unroll");
    k_.open("for (int i = 0; i < kFragmentsM; ++i)");
    k_.line("#pragma unroll");
    k_.line(
        fmt::format("for (int j = 0; j < kFragmentsN; ++j) mma_{}(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 "
                    "* 2 + 1]);",
                    name_of(type_)));
    k_.close();
    k_.close();
  }

  void epilogue(const StageText::Point& outside) {
    k_.constant("kVector", schedule_.vector);
    k_.line("__syncthreads();  // the ring becomes each warp's staging of 16 rows");
    k_.line("auto* staging = reinterpret_cast<float(*)[kWarpTile + kStagingPad]>(launch_shared()) + warp * 16;");
    k_.line("#pragma unroll");
    k_.open("for (int i = 0; i < kFragmentsM; ++i)");
    k_.line("#pragma unroll");
    k_.open("for (int j = 0; j < kFragmentsN; ++j)");
    k_.line("float* low = &staging[lane / 4][j * 8 + lane % 4 * 2];");
    k_.line("float* high = &staging[lane / 4 + 8][j * 8 + lane % 4 * 2];");
    for (int e = 0; e < 4; ++e) k_.line(fmt::format("{}[{}] = sum[i][j][{}];", e < 2 ? "low" : "high", e % 2, e));
    k_.close();
    k_.line("__syncwarp();");
    k_.open("for (int e = lane; e < 16 * kWarpTile / kVector; e += 32)");
    k_.line("const int row = e / (kWarpTile / kVector);");
    k_.line("const int column = e % (kWarpTile / kVector) * kVector;");
    store(outside, "m0 + warp_m + i * 16 + row", "n0 + warp_n + column", schedule_.vector);
    k_.close();
    k_.line("__syncwarp();");
    k_.close();
  }
};

}  // namespace

void emit_mma(Kernel& k) { Mma(k).emit(); }

}  // namespace opfuse::cuda
