// Contraction on tensor cores (mma.sync, f16 or bf16 operands, fp32 sums); convolutions as implicit GEMM:
//
//   tile_a [kStages][kTileM][kTileK + kPad], tile_b [kStages][kTileN][kTileK + kPad]      k is contiguous in both
//   a ring of stages: copies for step t + kStages - 1 are under way while step t is multiplied
//   each warp: 32 x 32 sums as 2 x 4 fragments of 16 x 8, operands by ldmatrix
//   epilogue once: sums through shared memory, so that neighbouring threads store neighbouring channels, 16 bytes each
//
// Where an operand's k lies together in memory (channels last), tiles are filled by asynchronous copies of 16 bytes;
// elsewhere element by element, with whatever expression the operand is. Outside the problem tiles are zero.
#include <fmt/format.h>

#include "base/fail.hpp"
#include "cuda/emitters.hpp"
#include "cuda/mma_operands.hpp"
#include "cuda/schedules.hpp"
#include "cuda/tile_frame.hpp"
#include "cuda/vector_body.hpp"

namespace opfuse::cuda {
namespace {

class Mma {
 public:
  explicit Mma(Kernel& k) : k_(k), s_(k), view_(mma_view(k.region, k.layouts())) {
    const auto s = typed<MmaSchedule>(k.spec.schedule);
    frame_.tile_m = s.mma_m;
    frame_.tile_n = s.mma_n;
    frame_.tile_k = kTileK;
    stages_ = s.stages;
    OPFUSE_CHECK(stages_ >= 2, "{} stages: one is filled while another is multiplied", stages_);
    bf16_ = s_.stage.reductions[0].value.dtype() == DType::bf16;
    copies_ = s.copy_a > 0 || s.copy_b > 0;
  }

  void emit() {
    declare_constants();
    StageText::Point point{Env(static_cast<size_t>(s_.axis_count()), Dim(0))};
    place(point);
    k_.line("float sum[2][4][4] = {};");
    const std::string steps = k_.text_of(ceil_div(frame_.k, Dim(kTileK)));
    k_.line(fmt::format("const {} steps = {};", k_.index_type(), steps));
    k_.open("for (int t = 0; t < kStages - 1; ++t)");
    fill_stage("t", "t", point);
    k_.close();
    k_.open(fmt::format("for ({0} t = 0; t < steps; ++t)", k_.index_type()));
    if (copies_) k_.line("copy_wait<kStages - 2>();");
    k_.line("__syncthreads();");
    k_.line(fmt::format("const {} ahead = t + kStages - 1;", k_.index_type()));
    fill_stage("ahead", "(int)(ahead % kStages)", point);
    k_.line("const int stage = (int)(t % kStages);");
    multiply();
    k_.close();
    epilogue(point);
  }

 private:
  static constexpr int64_t kTileK = 32, kPad = 8, kWarpTile = 32, kStagingPad = 4;
  Kernel& k_;
  StageText s_;
  TileView view_;
  TileFrame frame_{s_, view_};
  int64_t stages_;
  bool bf16_, copies_;

  void declare_constants() {
    k_.block = static_cast<int>(frame_.tile_m / kWarpTile * (frame_.tile_n / kWarpTile) * 32);
    k_.constant("kTileM", frame_.tile_m);
    k_.constant("kTileN", frame_.tile_n);
    k_.constant("kTileK", kTileK);
    k_.constant("kPad", kPad);
    k_.constant("kStages", stages_);
    k_.constant("kWarpTile", kWarpTile);
    k_.constant("kWarpsN", frame_.tile_n / kWarpTile);
    k_.constant("kStagingPad", kStagingPad);
    k_.constant("kBlock", k_.block);
    k_.shared("__align__(16) unsigned short", "tile_a", "[kStages][kTileM][kTileK + kPad]");
    k_.shared("__align__(16) unsigned short", "tile_b", "[kStages][kTileN][kTileK + kPad]");
    k_.shared("__align__(16) float", "staging", "[kBlock / 32][16][kWarpTile + kStagingPad]");
    if (copies_)
      for (const char* helper : {"copy_16", "copy_commit", "copy_wait"}) k_.use(helper);
    k_.use("ldmatrix_x4");
    k_.use("ldmatrix_x2");
    k_.use(bf16_ ? "mma_bf16" : "mma_f16");
    k_.grid = frame_.blocks();
  }

  void place(StageText::Point& point) {
    frame_.place(TileFrame::First::columns, point);  // neighbouring blocks share rows of A
    k_.line("const int lane = (int)threadIdx.x % 32;");
    k_.line("const int warp = (int)threadIdx.x / 32;");
    k_.line("const int warp_m = warp / kWarpsN * kWarpTile;");
    k_.line("const int warp_n = warp % kWarpsN * kWarpTile;");
  }

  /// Copies for step `t` into stage `stage`, and the end of their group; nothing is copied after the last step.
  void fill_stage(const std::string& t, const std::string& stage, const StageText::Point& point) {
    k_.open(fmt::format("if ({} < steps)", t));
    k_.line(fmt::format("const {} k0 = {} * kTileK;", k_.index_type(), t));
    fill("tile_a", stage, view_.a, view_.m, "m", "kTileM", frame_.m, frame_.tile_m,
         typed<MmaSchedule>(k_.spec.schedule).copy_a > 0, point);
    fill("tile_b", stage, view_.b, view_.n, "n", "kTileN", frame_.n, frame_.tile_n,
         typed<MmaSchedule>(k_.spec.schedule).copy_b > 0, point);
    k_.close();
    if (copies_) k_.line("copy_commit();");
  }

  void fill(const std::string& tile, const std::string& stage, const Expr& value, const std::vector<int>& axes,
            const std::string& name, const std::string& size_name, const Dim& extent, int64_t size, bool copies,
            const StageText::Point& outside) {
    const int64_t width = copies ? 8 : 1;
    k_.open(
        fmt::format("for (int e = (int)threadIdx.x; e < {} * kTileK{}; e += kBlock)", size_name, copies ? " / 8" : ""));
    const char* along = copies ? "(kTileK / 8)" : "kTileK";
    k_.line(fmt::format("const int tile_{} = e / {};", name, along));
    k_.line(fmt::format("const int tile_k = e % {}{};", along, copies ? " * 8" : ""));
    StageText::Point point = outside;
    const Dim at = k_.declare_index(name, fmt::format("{}0 + tile_{}", name, name));
    const Dim at_k = k_.declare_index("k", "k0 + tile_k");
    const std::string edge = frame_.inside(at, extent, size, at_k), inside = edge.empty() ? "true" : edge;
    const std::string element = fmt::format("{}[{}][tile_{}][tile_k]", tile, stage, name);
    if (width == 8) {
      copy_eight(value, inside, element, axes, at, at_k, point);
    } else {
      k_.line("unsigned short value = 0;");
      k_.open("if (" + inside + ")");
      s_.decode(at, axes, point.env);
      s_.decode(at_k, view_.k, point.env);
      k_.line(fmt::format("value = {};", bits_of(value, point)));
      k_.close();
      k_.line(element + " = value;");
    }
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

  /// 16 bytes of a read whose k lies together; zeros where a guard or the problem's edge says so.
  void copy_eight(const Expr& value, const std::string& inside, const std::string& element,
                  const std::vector<int>& axes, const Dim& at, const Dim& at_k, StageText::Point& point) {
    const int read = mma_read(value);
    const Read& r = s_.stage.reads[static_cast<size_t>(read)];
    const Operand operand = s_.operand_of(r);
    s_.decode(at, axes, point.env);
    s_.decode(at_k, view_.k, point.env);
    std::string guard = s_.guarded(read) ? s_.inside(operand, r.map, point) : "true";
    if (guard == "true")
      guard = inside;
    else if (inside != "true")
      guard = inside + " && " + guard;
    k_.line(fmt::format("const bool inside = {};", guard));
    k_.line(fmt::format("copy_16(&{}, inside ? {} + {} : {}, inside);", element, operand.name,
                        k_.text_of(s_.offset(operand, r.map, point)), operand.name));
  }

  void multiply() {
    k_.line("#pragma unroll");
    k_.open("for (int k = 0; k < kTileK; k += 16)");
    k_.line("unsigned int a[2][4];");
    k_.line("unsigned int b[4][2];");
    k_.line("#pragma unroll");
    k_.line(
        "for (int i = 0; i < 2; ++i) ldmatrix_x4(a[i], &tile_a[stage][warp_m + i * 16 + lane % 16][k + lane / 16 * "
        "8]);");
    k_.line("#pragma unroll");
    k_.line(
        "for (int j = 0; j < 4; ++j) ldmatrix_x2(b[j], &tile_b[stage][warp_n + j * 8 + lane % 8][k + lane / 8 % 2 * "
        "8]);");
    k_.line("#pragma unroll");
    k_.open("for (int i = 0; i < 2; ++i)");
    k_.line("#pragma unroll");
    k_.line(fmt::format("for (int j = 0; j < 4; ++j) {}(sum[i][j], a[i], b[j]);", bf16_ ? "mma_bf16" : "mma_f16"));
    k_.close();
    k_.close();
  }

  void epilogue(const StageText::Point& outside) {
    const int64_t vector = typed<MmaSchedule>(k_.spec.schedule).vector;
    k_.constant("kVector", vector);
    k_.line("#pragma unroll");
    k_.open("for (int i = 0; i < 2; ++i)");
    k_.line("#pragma unroll");
    k_.open("for (int j = 0; j < 4; ++j)");
    k_.line("float* low = &staging[warp][lane / 4][j * 8 + lane % 4 * 2];");
    k_.line("float* high = &staging[warp][lane / 4 + 8][j * 8 + lane % 4 * 2];");
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
        element.results = {"staging[warp][row][column + " + j + "]"};
      });
    } else {
      point.results = {"staging[warp][row][column]"};
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
