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

#include "codegen/cuda/skeletons.hpp"
#include "codegen/cuda/tile_view.hpp"

namespace opfuse::cuda {
namespace {

class Tiles {
 public:
  explicit Tiles(Kernel& k) : k_(k), s_(k), view_(std::get<TileView>(view_tiles(k.region))) {
    const Schedule& s = k.spec.schedule;
    tile_m_ = s.get("tile_m", 64);
    tile_n_ = s.get("tile_n", 64);
    tile_k_ = s.get("tile_k", 16);
    per_m_ = s.get("per_m", 4);
    per_n_ = s.get("per_n", 4);
    m_ = s_.elements(view_.m);
    n_ = s_.elements(view_.n);
    kk_ = s_.elements(view_.k);
  }

  void emit() {
    declare_constants();
    StageText::Point point{Env(static_cast<size_t>(s_.axis_count()), Dim(0))};
    place(point);
    k_.line("float sum[kPerM][kPerN] = {};");
    k_.open(fmt::format("for ({0} k0 = 0; k0 < {1}; k0 += kTileK)", k_.index_type(), k_.text_of(kk_)));
    fill("tile_a", view_.a, view_.m, "m", tile_m_, m_, point);
    fill("tile_b", view_.b, view_.n, "n", tile_n_, n_, point);
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
  int64_t tile_m_, tile_n_, tile_k_, per_m_, per_n_;
  Dim m_, n_, kk_;

  void declare_constants() {
    k_.block = static_cast<int>(tile_m_ / per_m_ * (tile_n_ / per_n_));
    k_.constant("kTileM", tile_m_);
    k_.constant("kTileN", tile_n_);
    k_.constant("kTileK", tile_k_);
    k_.constant("kPerM", per_m_);
    k_.constant("kPerN", per_n_);
    k_.constant("kThreadsM", tile_m_ / per_m_);
    k_.constant("kThreadsN", tile_n_ / per_n_);
    k_.constant("kBlock", k_.block);
    k_.shared("float", "tile_a", "[kTileK][kTileM + 1]");
    k_.shared("float", "tile_b", "[kTileK][kTileN + 1]");
    k_.grid = ceil_div(m_, Dim(tile_m_)) * ceil_div(n_, Dim(tile_n_)) * s_.elements(view_.batch);
  }

  void place(StageText::Point& point) {
    const Dim tiles_n = ceil_div(n_, Dim(tile_n_)), tiles_m = ceil_div(m_, Dim(tile_m_));
    const std::string type = k_.index_type();
    Dim rest = k_.declare_index("tile", fmt::format("({})blockIdx.x", type));
    const auto cut = [&](const char* name, const Dim& count, const char* size) {
      if (count == Dim(1)) return k_.line(fmt::format("const {} {} = 0;", type, name));
      const std::string wrapped = count.is_constant() ? k_.text_of(count) : "(" + k_.text_of(count) + ")";
      k_.line(fmt::format("const {} {} = {} % {} * {};", type, name, k_.text_of(rest), wrapped, size));
      rest = k_.declare_index("rest", fmt::format("{} / {}", k_.text_of(rest), wrapped));
    };
    cut("m0", tiles_m, "kTileM");
    cut("n0", tiles_n, "kTileN");
    if (!view_.batch.empty()) s_.decode(rest, view_.batch, point.env);
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
    std::string inside;
    if (!extent.is_constant() || extent.value() % size)
      inside = fmt::format("{} < {}", k_.text_of(at), k_.text_of(extent));
    if (!kk_.is_constant() || kk_.value() % tile_k_)
      inside += fmt::format("{}{} < {}", inside.empty() ? "" : " && ", k_.text_of(at_k), k_.text_of(kk_));
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
    if (!m_.is_constant() || m_.value() % tile_m_)
      k_.line(fmt::format("if ({} >= {}) break;", k_.text_of(m), k_.text_of(m_)));
    s_.decode(m, view_.m, point.env);
    k_.line("#pragma unroll");
    k_.open("for (int j = 0; j < kPerN; ++j)");
    const Dim n = k_.declare_index("n", "n0 + thread_n + j * kThreadsN");
    if (!n_.is_constant() || n_.value() % tile_n_)
      k_.line(fmt::format("if ({} >= {}) break;", k_.text_of(n), k_.text_of(n_)));
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
