// Contraction with fused multiply-adds:
//
//   for each K step of kTileK:     all threads fill tile_a [kTileK][kTileM] and tile_b [kTileK][kTileN]
//     barrier
//     each thread: kPerM x kPerN sums, operands from shared memory
//     barrier
//   epilogue once, after the last step
//
// Elements outside the problem are zero in the tiles. Neighbouring threads have neighbouring m (or n) where results are
// stored, and walk whichever axis is contiguous in memory where operands are loaded.
#include <fmt/format.h>

#include "cuda/emitters.hpp"
#include "cuda/schedules.hpp"
#include "cuda/tile_frame.hpp"

namespace opfuse::cuda {
namespace {

class Tiles {
 public:
  explicit Tiles(Kernel& k) : k_(k), s_(k), view_(std::get<TileView>(view_tiles(k.region))) {
    const auto s = typed<TilesSchedule>(k.spec.schedule);
    frame_.tile_m = s.tile_m;
    frame_.tile_n = s.tile_n;
    frame_.tile_k = s.tile_k;
    per_m_ = s.per_m;
    per_n_ = s.per_n;
  }

  void emit() {
    declare_constants();
    StageText::Point point{Env(static_cast<size_t>(s_.axis_count()), Dim(0))};
    place(point);
    k_.line("float sum[kPerM][kPerN] = {};");
    k_.open(fmt::format("for ({0} k0 = 0; k0 < {1}; k0 += kTileK)", k_.index_type(), k_.text_of(frame_.k)));
    fill("tile_a", view_.a, view_.m, "m", frame_.tile_m, frame_.m, point);
    fill("tile_b", view_.b, view_.n, "n", frame_.tile_n, frame_.n, point);
    k_.line("__syncthreads();");
    multiply();
    k_.line("__syncthreads();");
    k_.close();
    epilogue(point);
  }

 private:
  Kernel& k_;
  StageText s_;
  TileView view_;
  TileFrame frame_{s_, view_};
  int64_t per_m_, per_n_;

  void declare_constants() {
    k_.block = static_cast<int>(frame_.tile_m / per_m_ * (frame_.tile_n / per_n_));
    k_.constant("kTileM", frame_.tile_m);
    k_.constant("kTileN", frame_.tile_n);
    k_.constant("kTileK", frame_.tile_k);
    k_.constant("kPerM", per_m_);
    k_.constant("kPerN", per_n_);
    k_.constant("kThreadsM", frame_.tile_m / per_m_);
    k_.constant("kThreadsN", frame_.tile_n / per_n_);
    k_.constant("kBlock", k_.block);
    k_.shared("float", "tile_a", "[kTileK][kTileM + 1]");
    k_.shared("float", "tile_b", "[kTileK][kTileN + 1]");
    k_.grid = frame_.blocks();
  }

  void place(StageText::Point& point) {
    frame_.place(TileFrame::First::rows, point);
    // the axis that is contiguous in the result runs along neighbouring threads
    if (stored_along_n()) {
      k_.line("const int thread_n = (int)threadIdx.x % kThreadsN;");
      k_.line("const int thread_m = (int)threadIdx.x / kThreadsN;");
    } else {
      k_.line("const int thread_m = (int)threadIdx.x % kThreadsM;");
      k_.line("const int thread_n = (int)threadIdx.x / kThreadsM;");
    }
  }

  /// The axis along which an operand's elements are neighbours in memory, -1: none.
  int contiguous_axis(const Operand& operand, const IndexMap& map) const {
    for (size_t d = 0; d < map.dims.size(); ++d)
      if (operand.strides[d] == Dim(1))
        for (const IndexTerm& t : map.dims[d].terms)
          if (t.div == Dim(1) && !(s_.extent(t.axis) == Dim(1))) return t.axis;
    return -1;
  }

  bool stored_along_n() const {
    const StageOutput& o = s_.stage.outputs[0];
    const int axis = contiguous_axis(k_.operand(o.param), o.map);
    return !view_.n.empty() && axis == view_.n.back();
  }

  /// Whether the first read of an operand lies along the summed axes.
  bool read_along_k(const Expr& value) const {
    for (int r : reads_used(value)) {
      const Read& read = s_.stage.reads[static_cast<size_t>(r)];
      const int axis = contiguous_axis(s_.operand_of(read), read.map);
      if (axis >= 0) return axis >= s_.domain();
    }
    return false;
  }

  void fill(const std::string& tile, const Expr& value, const std::vector<int>& axes, const std::string& name,
            int64_t size, const Dim& extent, const StageText::Point& outside) {
    const std::string width = name == "m" ? "kTileM" : "kTileN";
    const bool along_k = read_along_k(value);
    k_.line("#pragma unroll 4");
    k_.open(fmt::format("for (int e = (int)threadIdx.x; e < kTileK * {}; e += kBlock)", width));
    k_.line(fmt::format("const int tile_{} = {};", name, along_k ? "e / kTileK" : "e % " + width));
    k_.line(fmt::format("const int tile_k = {};", along_k ? "e % kTileK" : "e / " + width));
    StageText::Point point = outside;
    const Dim at = k_.declare_index(name, fmt::format("{}0 + tile_{}", name, name));
    const Dim at_k = k_.declare_index("k", "k0 + tile_k");
    const std::string inside = frame_.inside(at, extent, size, at_k);
    const std::string element = fmt::format("{}[tile_k][tile_{}]", tile, name);
    if (!inside.empty()) {
      k_.line("float value = 0.0f;");
      k_.open("if (" + inside + ")");
    }
    s_.decode(at, axes, point.env);
    s_.decode(at_k, view_.k, point.env);
    ExprText text = s_.at(point);
    k_.line(fmt::format("{} = {};", inside.empty() ? element : "value", text.emit(value, value.dtype())));
    if (!inside.empty()) {
      k_.close();
      k_.line(element + " = value;");
    }
    k_.close();
  }

  void multiply() {
    k_.line("#pragma unroll");
    k_.open("for (int k = 0; k < kTileK; ++k)");
    k_.line("float a[kPerM];");
    k_.line("float b[kPerN];");
    k_.line("#pragma unroll");
    k_.line("for (int i = 0; i < kPerM; ++i) a[i] = tile_a[k][thread_m + i * kThreadsM];");
    k_.line("#pragma unroll");
    k_.line("for (int j = 0; j < kPerN; ++j) b[j] = tile_b[k][thread_n + j * kThreadsN];");
    k_.line("#pragma unroll");
    k_.open("for (int i = 0; i < kPerM; ++i)");
    k_.line("#pragma unroll");
    k_.line("for (int j = 0; j < kPerN; ++j) sum[i][j] = fmaf(a[i], b[j], sum[i][j]);");
    k_.close();
    k_.close();
  }

  void epilogue(const StageText::Point& outside) {
    StageText::Point point = outside;
    k_.line("#pragma unroll");
    k_.open("for (int i = 0; i < kPerM; ++i)");
    const Dim m = k_.declare_index("m", "m0 + thread_m + i * kThreadsM");
    if (!frame_.m.is_constant() || frame_.m.value() % frame_.tile_m)
      k_.line(fmt::format("if ({} >= {}) break;", k_.text_of(m), k_.text_of(frame_.m)));
    s_.decode(m, view_.m, point.env);
    k_.line("#pragma unroll");
    k_.open("for (int j = 0; j < kPerN; ++j)");
    const Dim n = k_.declare_index("n", "n0 + thread_n + j * kThreadsN");
    if (!frame_.n.is_constant() || frame_.n.value() % frame_.tile_n)
      k_.line(fmt::format("if ({} >= {}) break;", k_.text_of(n), k_.text_of(frame_.n)));
    s_.decode(n, view_.n, point.env);
    point.results = {"sum[i][j]"};
    s_.store_outputs(point);
    k_.close();
    k_.close();
  }
};

}  // namespace

void emit_tiles(Kernel& k) { Tiles(k).emit(); }

}  // namespace opfuse::cuda
