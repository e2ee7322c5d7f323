// Attention in fp32 arithmetic, in one pass over the keys; 16 x 16 threads:
//
//   shared.queries [depth][kRows]
//   for each kKeys keys: shared.keys [depth][kKeys], shared.values [kKeys][columns]
//     each thread: kPerM x kPerN scores; scale, mask and bias as the model has them
//     highest, total: kept up to date over the 16 threads of a row; sums so far are scaled by exp(highest before -
//     highest) exp(score - highest) -> shared.weights [kKeys][kRows], which those 16 threads alone read each thread:
//     kPerM x kPerColumn sums of weights and values
//
// Rows and keys behind the last ones are zero in the tiles; scores behind the last key are minus infinity.
#include <fmt/format.h>

#include "cuda/attention_frame.hpp"
#include "cuda/emitters.hpp"
#include "cuda/schedules.hpp"

namespace opfuse::cuda {
namespace {

constexpr int64_t kThreads = 16;

class Attention {
 public:
  explicit Attention(Kernel& k) : k_(k), f_(k), s_(typed<AttentionSchedule>(k.spec.schedule)) {}

  void emit() {
    declare_constants();
    k_.line("Shared& shared = *reinterpret_cast<Shared*>(launch_shared());");
    f_.place(s_.rows);
    k_.line("const int thread_n = (int)threadIdx.x % kThreads;");
    k_.line("const int thread_m = (int)threadIdx.x / kThreads;");
    fill("shared.queries", f_.scores, f_.view.query, "m0", s_.rows, f_.queries, f_.depth, true,
         [&](const Dim& row, const Dim& number) { return f_.score_at(row, 0, number); });
    k_.line("float sum[kPerM][kPerColumn] = {};");
    k_.line("float highest[kPerM], total[kPerM] = {};  // total: of this thread's keys");
    k_.line("#pragma unroll");
    k_.line("for (int i = 0; i < kPerM; ++i) highest[i] = -__int_as_float(0x7f800000);");
    k_.open(fmt::format("for ({0} n0 = 0; n0 < {1}; n0 += kKeys)", k_.index_type(), k_.text_of(f_.keys)));
    fill("shared.keys", f_.scores, f_.view.key, "n0", s_.keys, f_.keys, f_.depth, true,
         [&](const Dim& row, const Dim& number) { return f_.score_at(0, row, number); });
    fill("shared.values", f_.context, f_.view.value, "n0", s_.keys, f_.keys, f_.columns, false,
         [&](const Dim& row, const Dim& number) { return f_.result_at(0, number, row); });
    k_.line("__syncthreads();");
    multiply_keys();
    change_scores();
    update_rows();
    multiply_values();
    k_.line("__syncthreads();");
    k_.close();
    epilogue();
  }

 private:
  Kernel& k_;
  AttentionFrame f_;
  AttentionSchedule s_;

  void declare_constants() {
    k_.block = static_cast<int>(kThreads * kThreads);
    const int64_t columns = (f_.columns + kThreads - 1) / kThreads;
    k_.constant("kBlock", k_.block);
    k_.constant("kThreads", kThreads);
    k_.constant("kRows", s_.rows);
    k_.constant("kKeys", s_.keys);
    k_.constant("kDepth", f_.depth);
    k_.constant("kColumns", f_.columns);
    k_.constant("kPerM", s_.rows / kThreads);
    k_.constant("kPerN", s_.keys / kThreads);
    k_.constant("kPerColumn", columns);
    k_.declare_type(
        "struct Shared {\n"
        "  float queries[kDepth][kRows + 1];\n"
        "  float keys[kDepth][kKeys + 1];\n"
        "  float values[kKeys][kPerColumn * kThreads];\n"
        "  float weights[kKeys][kRows + 1];\n"
        "};\n");
    const int64_t floats = f_.depth * (s_.rows + 1 + s_.keys + 1) + s_.keys * (columns * kThreads + s_.rows + 1);
    k_.hold(4 * floats, 4 * floats);
    k_.use("launch_shared");
  }

  /// Rows [first, first + rows) of an operand; `turned`: [number][row] instead of [row][number].
  template <class At>
  void fill(const std::string& tile, StageText& stage, const Expr& value, const std::string& first, int64_t rows,
            const Dim& row_count, int64_t numbers, bool turned, At at) {
    k_.line("#pragma unroll 4");
    k_.open(fmt::format("for (int e = (int)threadIdx.x; e < {}; e += kBlock)", rows * numbers));
    k_.line(fmt::format("const int row = e / {};", numbers));
    k_.line(fmt::format("const int number = e % {};", numbers));
    const Dim row = k_.declare_index("at", first + " + row");
    const std::string inside = f_.within(row, row_count, rows);
    k_.line("float value = 0.0f;");
    if (!inside.empty()) k_.open("if (" + inside + ")");
    ExprText text = stage.at(at(row, Kernel::local("number")));
    k_.line(fmt::format("value = {};", text.emit(value, value.dtype())));
    if (!inside.empty()) k_.close();
    k_.line(fmt::format("{}[{}] = value;", tile, turned ? "number][row" : "row][number"));
    k_.close();
  }

  void multiply_keys() {
    k_.line("float score[kPerM][kPerN] = {};");
    k_.line("#pragma unroll 4");
    k_.open("for (int k = 0; k < kDepth; ++k)");
    load("a", "kPerM", "shared.queries[k][thread_m + i * kThreads]");
    load("b", "kPerN", "shared.keys[k][thread_n + i * kThreads]");
    outer("kPerN", "score");
    k_.close();
  }

  void load(const std::string& name, const std::string& count, const std::string& from) {
    k_.line(fmt::format("float {}[{}];", name, count));
    k_.line("#pragma unroll");
    k_.line(fmt::format("for (int i = 0; i < {}; ++i) {}[i] = {};", count, name, from));
  }

  void outer(const std::string& count, const std::string& sums) {
    k_.line("#pragma unroll");
    k_.open("for (int i = 0; i < kPerM; ++i)");
    k_.line("#pragma unroll");
    k_.line(fmt::format("for (int j = 0; j < {0}; ++j) {1}[i][j] = fmaf(a[i], b[j], {1}[i][j]);", count, sums));
    k_.close();
  }

  void change_scores() {
    k_.line("#pragma unroll");
    k_.open("for (int i = 0; i < kPerM; ++i)");
    k_.line("#pragma unroll");
    k_.open("for (int j = 0; j < kPerN; ++j)");
    const Dim row = k_.declare_index("m", "m0 + thread_m + i * kThreads");
    const Dim key = k_.declare_index("n", "n0 + thread_n + j * kThreads");
    f_.declare_score("changed", row, key, "score[i][j]", s_.rows, s_.keys);
    k_.line("score[i][j] = changed;");
    k_.close();
    k_.close();
  }

  /// Rows that have seen no key yet but masked ones are measured from 0.
  void update_rows() {
    k_.line("#pragma unroll");
    k_.open("for (int i = 0; i < kPerM; ++i)");
    k_.line("float most = highest[i];");
    k_.line("#pragma unroll");
    k_.line("for (int j = 0; j < kPerN; ++j) most = fmaxf(most, score[i][j]);");
    k_.line("#pragma unroll");
    k_.line("for (int step = 8; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));");
    k_.line("const float base = most == -__int_as_float(0x7f800000) ? 0.0f : most;");
    k_.line("const float keep = expf(highest[i] - base);");
    k_.line("highest[i] = most;");
    k_.line("total[i] *= keep;");
    k_.line("#pragma unroll");
    k_.open("for (int j = 0; j < kPerN; ++j)");
    k_.line("const float weight = expf(score[i][j] - base);");
    k_.line("total[i] += weight;");
    k_.line("shared.weights[thread_n + j * kThreads][thread_m + i * kThreads] = weight;");
    k_.close();
    k_.line("#pragma unroll");
    k_.line("for (int j = 0; j < kPerColumn; ++j) sum[i][j] *= keep;");
    k_.close();
  }

  void multiply_values() {
    k_.line("__syncwarp();  // a row's weights are those of 16 lanes");
    k_.line("#pragma unroll 4");
    k_.open("for (int k = 0; k < kKeys; ++k)");
    load("a", "kPerM", "shared.weights[k][thread_m + i * kThreads]");
    const bool whole = f_.columns % kThreads == 0;
    load("b", "kPerColumn",
         whole ? "shared.values[k][thread_n + i * kThreads]"
               : "thread_n + i * kThreads < kColumns ? shared.values[k][thread_n + i * kThreads] : 0.0f");
    outer("kPerColumn", "sum");
    k_.close();
  }

  void epilogue() {
    k_.line("#pragma unroll");
    k_.open("for (int i = 0; i < kPerM; ++i)");
    k_.line("#pragma unroll");
    k_.line("for (int step = 8; step > 0; step /= 2) total[i] += __shfl_xor_sync(0xffffffffu, total[i], step);");
    k_.line("const float factor = " + f_.factor("highest[i]", "total[i]") + ";");
    const Dim m = k_.declare_index("m", "m0 + thread_m + i * kThreads");
    const std::string row_inside = f_.within(m, f_.queries, s_.rows);
    k_.line("#pragma unroll");
    k_.open("for (int j = 0; j < kPerColumn; ++j)");
    const Dim c = k_.declare_index("column", "thread_n + j * kThreads");
    std::string inside = row_inside;
    if (f_.columns % kThreads) inside += fmt::format("{}{} < kColumns", inside.empty() ? "" : " && ", k_.text_of(c));
    if (!inside.empty()) k_.open("if (" + inside + ")");
    k_.line("const float result = " + f_.result("sum[i][j]", "factor") + ";");
    StageText::Point point = f_.result_at(m, c, 0);
    point.results = {"result"};
    f_.context.store_outputs(point);
    if (!inside.empty()) k_.close();
    k_.close();
    k_.close();
  }
};

}  // namespace

void emit_attention(Kernel& k) { Attention(k).emit(); }

}  // namespace opfuse::cuda
