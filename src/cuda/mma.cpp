// Contraction on tensor cores (mma.sync, f16 or bf16 operands, fp32 sums); convolutions as implicit GEMM:
//
//   shared.a [kStages][kTileM][kTileK], shared.b [kStages][kTileN][kTileK]      k is contiguous in both
//   a ring of stages: copies for step t + kStages - 1 are under way while step t is multiplied
//   each warp: kWarpM x kWarpN sums as fragments of 16 x 8, operands by ldmatrix
//   epilogue once: sums through the ring's memory, so that neighbouring threads store neighbouring channels, 16 bytes
//   each
//
// The 8 k of 16 bytes lie at a place that XORs their number with the row's (place): eight rows of one chunk are in all
// banks. Where an operand's k lies together in memory (channels last), tiles are filled by asynchronous copies of 16
// bytes (mma_copies.hpp); elsewhere element by element, with whatever expression the operand is. Outside the problem
// tiles are zero.
#include <fmt/format.h>

#include <optional>

#include "base/fail.hpp"
#include "cuda/emitters.hpp"
#include "cuda/mma_copies.hpp"
#include "cuda/mma_operands.hpp"
#include "cuda/schedules.hpp"
#include "cuda/tile_frame.hpp"
#include "cuda/vector_body.hpp"

namespace opfuse::cuda {
namespace {

class Mma {
 public:
  explicit Mma(Kernel& k)
      : k_(k),
        s_(k),
        view_(mma_view(k.region, k.layouts())),
        schedule_(typed<MmaSchedule>(k.spec.schedule)),
        bf16_(s_.stage.reductions[0].value.dtype() == DType::bf16),
        copies_(schedule_.copy_a > 0 || schedule_.copy_b > 0) {
    frame_.tile_m = schedule_.mma_m;
    frame_.tile_n = schedule_.mma_n;
    frame_.tile_k = schedule_.mma_k;
    k_.block = static_cast<int>(schedule_.mma_m / schedule_.warp * (schedule_.mma_n / schedule_.warp) * 32);
    const int64_t threads = k_.block / (schedule_.mma_k / 8);
    if (schedule_.copy_a)
      a_.emplace(s_, view_, view_.a, MmaCopies::Tile{"a", "m", view_.m, frame_.m, schedule_.mma_m, threads});
    if (schedule_.copy_b)
      b_.emplace(s_, view_, view_.b, MmaCopies::Tile{"b", "n", view_.n, frame_.n, schedule_.mma_n, threads});
  }

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
  Kernel& k_;
  StageText s_;
  TileView view_;
  MmaSchedule schedule_;
  TileFrame frame_{s_, view_};
  bool bf16_, copies_;
  std::optional<MmaCopies> a_, b_;

  void declare_constants() {
    const int64_t chunks = frame_.tile_k / 8, warp = schedule_.warp;
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
        "struct Shared {\n"
        "  uint4 a[kStages][kTileM * kChunks];  // 16 bytes, 8 k, at place(row, k / 8)\n"
        "  uint4 b[kStages][kTileN * kChunks];\n"
        "};\n");
    const int64_t ring = schedule_.stages * (frame_.tile_m + frame_.tile_n) * frame_.tile_k * 2;
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
    k_.use(bf16_ ? "mma_bf16" : "mma_f16");
    k_.grid = frame_.blocks();
  }

  void place(StageText::Point& point) {
    k_.line("Shared& shared = *reinterpret_cast<Shared*>(launch_shared());");
    frame_.place(TileFrame::First::columns, point);  // neighbouring blocks share rows of A
    k_.line("const int lane = (int)threadIdx.x % 32;");
    k_.line("const int warp = (int)threadIdx.x / 32;");
    k_.line("const int warp_m = warp / kWarpsN * kWarpTile;");
    k_.line("const int warp_n = warp % kWarpsN * kWarpTile;");
    k_.line("int rows_a[kTileK / 16], rows_b[kTileK / 16];  // where this lane's rows of fragments lie");
    k_.line("#pragma unroll");
    k_.open("for (int k = 0; k < kTileK / 16; ++k)");
    k_.line("rows_a[k] = place<kChunks>(warp_m + lane % 16, k * 2 + lane / 16);");
    k_.line("rows_b[k] = place<kChunks>(warp_n + lane % 8 + lane / 16 * 8, k * 2 + lane / 8 % 2);");
    k_.close();
  }

  /// What is known before the loop, and `fill`: step t into a stage.
  void declare_fill(const StageText::Point& point) {
    if (copies_) {
      k_.constant("kRowStep", k_.block / (frame_.tile_k / 8));
      k_.line("const int chunk = (int)threadIdx.x % kChunks;  // this thread copies 8 k of every kRowStep-th row");
      k_.line("const int row = (int)threadIdx.x / kChunks;");
      k_.line("const int at = place<kChunks>(row, chunk);");
    }
    if (a_) a_->declare(point.env);
    if (b_) b_->declare(point.env);
    k_.line(fmt::format("const {} steps = {};", k_.index_type(), k_.text_of(ceil_div(frame_.k, Dim(frame_.tile_k)))));
    k_.open(fmt::format("const auto fill = [&]({} step, int stage)", k_.index_type()));
    if (copies_) {
      Env along(point.env.size(), Dim(0));
      const Dim k = k_.declare_index("k", "step * kTileK + chunk * 8");
      const bool ragged = !frame_.k.is_constant() || frame_.k.value() % frame_.tile_k != 0;
      const std::string within =
          ragged ? k_.declare("bool", "within", fmt::format("{} < {}", k_.text_of(k), k_.text_of(frame_.k))) : "";
      s_.decode(k, view_.k, along);
      if (a_) a_->copy(along, within, point);
      if (b_) b_->copy(along, within, point);
    }
    if (!a_) fill_elements("a", view_.a, view_.m, "m", "kTileM", frame_.m, frame_.tile_m, point);
    if (!b_) fill_elements("b", view_.b, view_.n, "n", "kTileN", frame_.n, frame_.tile_n, point);
    k_.close(";");
  }

  /// An operand that needs more than a copy: one element after the other.
  void fill_elements(const std::string& tile, const Expr& value, const std::vector<int>& axes, const std::string& name,
                     const std::string& size_name, const Dim& extent, int64_t size, const StageText::Point& outside) {
    k_.open(fmt::format("for (int e = (int)threadIdx.x; e < {} * kTileK; e += kBlock)", size_name));
    k_.line(fmt::format("const int tile_{} = e / kTileK;", name));
    k_.line("const int tile_k = e % kTileK;");
    StageText::Point point = outside;
    const Dim at = k_.declare_index(name, fmt::format("{}0 + tile_{}", name, name));
    const Dim at_k = k_.declare_index("k", "step * kTileK + tile_k");
    const std::string edge = frame_.inside(at, extent, size, at_k);
    k_.line("unsigned short value = 0;");
    k_.open("if (" + (edge.empty() ? "true" : edge) + ")");
    s_.decode(at, axes, point.env);
    s_.decode(at_k, view_.k, point.env);
    k_.line(fmt::format("value = {};", bits_of(value, point)));
    k_.close();
    k_.line(
        fmt::format("reinterpret_cast<unsigned short*>(shared.{}[stage])[place<kChunks>(tile_{}, tile_k / 8) * 8 + "
                    "tile_k % 8] = value;",
                    tile, name));
    k_.close();
  }

  /// The operand's 16 bits: those in memory when it is a plain read.
  std::string bits_of(const Expr& value, const StageText::Point& point) {
    const int read = mma_read(value);
    if (read < 0) {
      ExprText text = s_.at(point);
      return to_memory(k_, value.dtype(), text.emit(value, value.dtype()));
    }
    const Read& r = s_.stage.reads[static_cast<size_t>(read)];
    const Operand operand = s_.operand_of(r);
    const std::string guard = s_.guarded(read) ? s_.inside(operand, r.map, point) : "true";
    std::string element = fmt::format("{}[{}]", operand.name, k_.text_of(s_.offset(operand, r.map, point)));
    if (guard == "true") return element;
    return fmt::format("{} ? {} : 0", k_.declare("bool", "inside", guard), element);
  }

  void multiply() {
    k_.line("#pragma unroll");
    k_.open("for (int k = 0; k < kTileK / 16; ++k)");
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
        fmt::format("for (int j = 0; j < kFragmentsN; ++j) {}(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 "
                    "* 2 + 1]);",
                    bf16_ ? "mma_bf16" : "mma_f16"));
    k_.close();
    k_.close();
  }

  void epilogue(const StageText::Point& outside) {
    const int64_t vector = schedule_.vector;
    k_.constant("kVector", vector);
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
    StageText::Point point = outside;
    const Dim m = k_.declare_index("m", "m0 + warp_m + i * 16 + row");
    const Dim n = k_.declare_index("n", "n0 + warp_n + column");
    k_.open(fmt::format("if ({} < {} && {} < {})", k_.text_of(m), k_.text_of(frame_.m), k_.text_of(n),
                        k_.text_of(frame_.n)));
    s_.decode(m, view_.m, point.env);
    s_.decode(n, view_.n, point.env);
    if (vector > 1) {
      emit_vector(s_, point, view_.n.back(), vector, {}, [](StageText::Point& element, const std::string& j) {
        element.results = {"staging[row][column + " + j + "]"};
      });
    } else {
      point.results = {"staging[row][column]"};
      s_.store_outputs(point);
    }
    k_.close();
    k_.close();
    k_.line("__syncwarp();");
    k_.close();
  }
};

}  // namespace

void emit_mma(Kernel& k) { Mma(k).emit(); }

}  // namespace opfuse::cuda
