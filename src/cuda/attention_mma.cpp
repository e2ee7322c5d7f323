// Attention on tensor cores (mma.sync, f16 or bf16 operands, fp32 sums), in one pass over the keys:
//
//   shared.queries [kRows], then each warp keeps its 16 queries as fragments
//   for each kKeys keys, a ring of two stages filled by copies:
//     score [16][kKeys] = queries keys^T          in registers; scale, mask and bias as the model has them
//     highest, total: kept up to date; sums so far are scaled by exp(highest before - highest)
//     sum [16][kColumns] += exp(score - highest) values      the exponentials are the left operand as they lie
//   epilogue: sum / total through the ring's memory, so that 8 neighbouring results are stored at once
//
// Tiles lie in panels of 64 numbers, whose 16-byte places XOR chunk and row (place). What is behind a tile's edge is
// zero; scores behind the last key are minus infinity.
#include <fmt/format.h>

#include "cuda/attention_maps.hpp"
#include "cuda/attention_rows.hpp"
#include "cuda/emitters.hpp"
#include "cuda/schedules.hpp"
#include "cuda/vector_body.hpp"

namespace opfuse::cuda {
namespace {

constexpr int64_t kKeys = 64, kStages = 2, kStagingPad = 4;

int64_t rounded(int64_t numbers) { return (numbers + 15) / 16 * 16; }

class AttentionMma {
 public:
  explicit AttentionMma(Kernel& k)
      : k_(k),
        f_(k),
        s_(typed<AttentionMmaSchedule>(k.spec.schedule)),
        rows_(16 * s_.warps),
        bf16_(f_.scores.stage.reductions[0].value.dtype() == DType::bf16) {}

  void emit() {
    declare_constants();
    k_.line("Shared& shared = *reinterpret_cast<Shared*>(launch_shared());");
    f_.place(rows_);
    k_.line("const int lane = (int)threadIdx.x % 32;");
    k_.line("const int warp = (int)threadIdx.x / 32;");
    declare_fill();
    load_queries();
    k_.line("float sum[kColumns / 8][4] = {};");
    declare_rows(k_);
    k_.open(fmt::format("for ({0} t = 0; t < steps; ++t)", k_.index_type()));
    k_.line("copy_wait<kStages - 2>();");
    k_.line("__syncthreads();");
    k_.line("const int stage = (int)(t % kStages);");
    k_.line("if (t + 1 < steps) fill(t + 1, (stage + kStages - 1) % kStages);");
    k_.line("copy_commit();");
    multiply_keys();
    const FragmentTexts texts = fragments();
    change_scores(f_, texts);
    update_rows(k_, texts);
    multiply_values();
    k_.close();
    epilogue();
  }

 private:
  Kernel& k_;
  AttentionFrame f_;
  AttentionMmaSchedule s_;
  int64_t rows_;
  bool bf16_;

  const char* product() const { return bf16_ ? "mma_bf16" : "mma_f16"; }

  void declare_constants() {
    k_.block = static_cast<int>(s_.warps * 32);
    const int64_t depth = panels_of(f_.depth), columns = panels_of(f_.columns);
    k_.constant("kBlock", k_.block);
    k_.constant("kRows", rows_);
    k_.constant("kKeys", kKeys);
    k_.constant("kDepth", rounded(f_.depth));
    k_.constant("kColumns", rounded(f_.columns));
    k_.constant("kStages", kStages);
    k_.constant("kStagingPad", kStagingPad);
    k_.declare_type("constexpr float kLog2e = 1.44269504f;\n\n");
    k_.declare_type(
        fmt::format("struct Shared {{  // panels of 64 numbers: 16 bytes, 8 numbers, at place(row, number / 8 % 8)\n"
                    "  uint4 queries[{0}][kRows * 8];\n"
                    "  uint4 keys[kStages][{0}][kKeys * 8];\n"
                    "  uint4 values[kStages][{1}][kKeys * 8];\n"
                    "}};\n",
                    depth, columns));
    const int64_t ring = 128 * (depth * rows_ + kStages * kKeys * (depth + columns));
    const int64_t staging = rows_ * (rounded(f_.columns) + kStagingPad) * 4;
    k_.hold(std::max(ring, staging), std::max(ring, staging));
    k_.resident = s_.warps == 8 || depth + columns > 2 ? 1 : 2;
    k_.constant("kResident", k_.resident);
    for (const char* helper : {"launch_shared", "place", "copy_16", "copy_commit", "copy_wait", "ldmatrix_x4",
                               "ldmatrix_x4_transposed", "power_of_two", bf16_ ? "pack_bf16" : "pack_f16", product()})
      k_.use(helper);
  }

  /// Rows [first, first + rows) of an operand -> `to`, whose panels are whole tiles.
  struct Tile {
    std::string to, first;
    StageText& stage;
    const Expr& value;
    int64_t rows;
    Dim row_count;
    int64_t numbers;  ///< of a row
    bool copy;
    std::function<StageText::Point(const Dim& row, const Dim& number)> at;
  };

  void fill(const Tile& tile) { tile.copy ? copy_rows(tile) : fill_elements(tile); }

  void copy_rows(const Tile& tile) {
    const int64_t chunks = panels_of(tile.numbers) * 8;
    const Read& read = tile.stage.stage.reads[static_cast<size_t>(tile.value.index())];
    const Operand operand = tile.stage.operand_of(read);
    k_.line("#pragma unroll");
    k_.open(fmt::format("for (int i = 0; i < {}; ++i)", tile.rows * chunks / k_.block));
    k_.line(fmt::format("const int row = (int)threadIdx.x / {} + i * {};", chunks, k_.block / chunks));
    k_.line(fmt::format("const int chunk = (int)threadIdx.x % {};", chunks));
    const Dim row = k_.declare_index("at", tile.first + " + row");
    std::string inside = f_.within(row, tile.row_count, tile.rows);
    if (tile.numbers != chunks * 8)
      inside += fmt::format("{}chunk < {}", inside.empty() ? "" : " && ", tile.numbers / 8);
    const StageText::Point point = tile.at(row, Kernel::local("chunk") * Dim(8));
    k_.line(fmt::format("copy_16(&{}[{}][place<8>(row, chunk{})], {} + ({}), {});", tile.to,
                        chunks == 8 ? "0" : "chunk / 8", chunks == 8 ? "" : " % 8", operand.name,
                        k_.text_of(tile.stage.offset(operand, read.map, point)),
                        inside.empty() ? "16" : inside + " ? 16 : 0"));
    k_.close();
  }

  /// An operand that needs more than a copy: one element after the other.
  void fill_elements(const Tile& tile) {
    const int64_t numbers = rounded(tile.numbers);
    k_.open(fmt::format("for (int e = (int)threadIdx.x; e < {}; e += kBlock)", tile.rows * numbers));
    k_.line(fmt::format("const int row = e / {};", numbers));
    k_.line(fmt::format("const int number = e % {};", numbers));
    const Dim row = k_.declare_index("at", tile.first + " + row");
    std::string inside = f_.within(row, tile.row_count, tile.rows);
    if (tile.numbers != numbers) inside += fmt::format("{}number < {}", inside.empty() ? "" : " && ", tile.numbers);
    k_.line("unsigned short value = 0;");
    if (!inside.empty()) k_.open("if (" + inside + ")");
    ExprText text = tile.stage.at(tile.at(row, Kernel::local("number")));
    const DType dtype = tile.value.dtype();
    k_.line(fmt::format("value = {};", to_memory(k_, dtype, text.emit(tile.value, dtype))));
    if (!inside.empty()) k_.close();
    k_.line(
        fmt::format("reinterpret_cast<unsigned short*>({}[number / 64])[place<8>(row, number / 8 % 8) * 8 + "
                    "number % 8] = value;",
                    tile.to));
    k_.close();
  }

  /// `fill`: the keys and values of a step into a stage. Before the loop: queries, then the first step.
  void declare_fill() {
    k_.line(fmt::format("const {} steps = {};", k_.index_type(), k_.text_of(ceil_div(f_.keys, Dim(kKeys)))));
    k_.open(fmt::format("const auto fill = [&]({} step, int stage)", k_.index_type()));
    fill({"shared.keys[stage]", "step * kKeys", f_.scores, f_.view.key, kKeys, f_.keys, f_.depth, s_.copy_k > 0,
          [&](const Dim& row, const Dim& number) { return f_.score_at(0, row, number); }});
    fill({"shared.values[stage]", "step * kKeys", f_.context, f_.view.value, kKeys, f_.keys, f_.columns, s_.copy_v > 0,
          [&](const Dim& row, const Dim& number) { return f_.result_at(0, number, row); }});
    k_.close(";");
  }

  void load_queries() {
    fill({"shared.queries", "m0", f_.scores, f_.view.query, rows_, f_.queries, f_.depth, s_.copy_q > 0,
          [&](const Dim& row, const Dim& number) { return f_.score_at(row, 0, number); }});
    k_.line("if (steps > 0) fill(0, 0);");
    k_.line("copy_commit();");
    k_.line("copy_wait<0>();");
    k_.line("__syncthreads();");
    k_.line("unsigned int query[kDepth / 16][4];");
    k_.line("#pragma unroll");
    k_.line("for (int k = 0; k < kDepth / 16; ++k)");
    k_.line("  ldmatrix_x4(query[k], &shared.queries[k / 4][place<8>(warp * 16 + lane % 16, k % 4 * 2 + lane / 16)]);");
    k_.line("int rows_k[4], rows_v[4];  // where this lane's rows of fragments lie");
    k_.line("#pragma unroll");
    k_.open("for (int k = 0; k < 4; ++k)");
    k_.line("rows_k[k] = place<8>(lane % 8 + lane / 16 * 8, k * 2 + lane / 8 % 2);");
    k_.line("rows_v[k] = place<8>(lane % 16, k * 2 + lane / 16);");
    k_.close();
  }

  void multiply_keys() {
    k_.line("float score[kKeys / 8][4] = {};");
    k_.line("#pragma unroll");
    k_.open("for (int k = 0; k < kDepth / 16; ++k)");
    k_.line("#pragma unroll");
    k_.open("for (int j = 0; j < kKeys / 16; ++j)");
    k_.line("unsigned int b[4];");
    k_.line("ldmatrix_x4(b, &shared.keys[stage][k / 4][rows_k[k % 4] + j * 128]);");
    k_.line(fmt::format("{}(score[j * 2], query[k], b[0], b[1]);", product()));
    k_.line(fmt::format("{}(score[j * 2 + 1], query[k], b[2], b[3]);", product()));
    k_.close();
    k_.close();
  }

  FragmentTexts fragments() const {
    const auto of = [](const char* array) {
      return [array](const std::string& j, const std::string& e) { return fmt::format("{}[{}][{}]", array, j, e); };
    };
    return {of("score"), of("sum"), "warp * 16", rows_, kKeys};
  }

  void multiply_values() {
    const char* pack = bf16_ ? "pack_bf16" : "pack_f16";
    k_.line("#pragma unroll");
    k_.open("for (int k = 0; k < kKeys / 16; ++k)");
    k_.line("const float (&low)[4] = score[k * 2], (&high)[4] = score[k * 2 + 1];");
    k_.line(
        fmt::format("const unsigned int a[4] = {{{0}(low[0], low[1]), {0}(low[2], low[3]), {0}(high[0], high[1]), "
                    "{0}(high[2], high[3])}};",
                    pack));
    k_.line("#pragma unroll");
    k_.open("for (int j = 0; j < kColumns / 16; ++j)");
    k_.line("unsigned int b[4];");
    k_.line("ldmatrix_x4_transposed(b, &shared.values[stage][j / 4][rows_v[j % 4] + k * 128]);");
    k_.line(fmt::format("{}(sum[j * 2], a, b[0], b[1]);", product()));
    k_.line(fmt::format("{}(sum[j * 2 + 1], a, b[2], b[3]);", product()));
    k_.close();
    k_.close();
  }

  void epilogue() {
    k_.constant("kVector", s_.vector);
    k_.line("__syncthreads();  // the ring becomes each warp's staging of 16 rows");
    k_.line("auto* staging = reinterpret_cast<float(*)[kColumns + kStagingPad]>(launch_shared()) + warp * 16;");
    k_.line("#pragma unroll");
    k_.open("for (int half = 0; half < 2; ++half)");
    finish_rows(f_);
    k_.line("float* row = &staging[lane / 4 + half * 8][lane % 4 * 2];");
    k_.line("#pragma unroll");
    k_.open("for (int j = 0; j < kColumns / 8; ++j)");
    for (int e = 0; e < 2; ++e)
      k_.line(fmt::format("row[j * 8 + {0}] = {1};", e, f_.result(fmt::format("sum[j][half * 2 + {}]", e), "factor")));
    k_.close();
    k_.close();
    k_.line("__syncwarp();");
    k_.open("for (int e = lane; e < 16 * kColumns / kVector; e += 32)");
    k_.line("const int row = e / (kColumns / kVector);");
    k_.line("const int column = e % (kColumns / kVector) * kVector;");
    const Dim m = k_.declare_index("m", "m0 + warp * 16 + row");
    store_staged(f_, m, Kernel::local("column"), {rows_, rounded(f_.columns), s_.vector});
    k_.close();
  }
};

}  // namespace

void emit_attention_mma(Kernel& k) { AttentionMma(k).emit(); }

}  // namespace opfuse::cuda
