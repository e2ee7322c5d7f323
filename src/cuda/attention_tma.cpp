// Attention on Hopper's tensor cores (wgmma, f16 or bf16 operands, fp32 sums), fed by the copy engine (sm_90a):
//
//   the last warp     copies the block's queries, then keys and values of kKeys keys a step into a ring of stages
//   groups 0, 1       have 64 queries each, which they compute where those are more than a copy:
//     score [64][kKeys] = queries keys^T          both operands from shared memory, sums in registers
//     highest, total: kept up to date; sums so far are scaled by exp(highest before - highest)
//     sum [64][kColumns] += exp(score - highest) values      the exponentials are the left operand as they lie; of the
//                                                            values, columns lie together
//   ready, full[s], empty[s]     barriers of phases: queries are there; a stage is; all warps have multiplied it
//
// While one group has its exponentials, the tensor cores have another group's or block's products: ptxas serialises
// products that are under way from one step to the next beside sums that are read. Panels of 64 numbers lie in the
// swizzle of 128 bytes; what is behind a tensor's edge is zero, scores behind the last key are minus infinity.
#include <fmt/format.h>

#include "cuda/attention_maps.hpp"
#include "cuda/attention_rows.hpp"
#include "cuda/copy_engine_text.hpp"
#include "cuda/emitters.hpp"
#include "cuda/schedules.hpp"
#include "cuda/vector_body.hpp"

namespace opfuse::cuda {
namespace {

constexpr int64_t kGroup = 128, kRowsOfGroup = 64;

class AttentionTma {
 public:
  explicit AttentionTma(Kernel& k)
      : k_(k),
        f_(k),
        s_(typed<AttentionTmaSchedule>(k.spec.schedule)),
        rows_(kRowsOfGroup * s_.groups),
        type_(f_.scores.stage.reductions[0].value.dtype()),
        depth_panels_(panels_of(f_.depth)),
        column_panels_(panels_of(f_.columns)) {}

  void emit() {
    declare_constants();
    declare_maps();
    k_.line("Shared& shared = *reinterpret_cast<Shared*>(launch_shared_1024());");
    f_.place(rows_);
    k_.line(
        "const int group = (int)threadIdx.x / 128;  // the last one, a warp, copies; the others have 64 queries each");
    k_.line(fmt::format("const int steps = (int)({});", k_.text_of(ceil_div(f_.keys, Dim(s_.keys)))));
    begin_barriers(k_, "1", maps_->q ? "barrier_init(&shared.ready, 1);" : "");
    k_.open("if (group == kGroups)");
    k_.line("if (threadIdx.x % 32 != 0) return;");
    produce();
    k_.line("return;");
    k_.close();
    consume();
    epilogue();
  }

 private:
  Kernel& k_;
  AttentionFrame f_;
  AttentionTmaSchedule s_;
  int64_t rows_;
  DType type_;
  int64_t depth_panels_, column_panels_;
  std::optional<AttentionMaps> maps_;

  std::string scores_product() const { return fmt::format("product_{}_{}", name_of(type_), s_.keys); }
  std::string values_product() const {
    return fmt::format("product_of_registers_{}_{}", name_of(type_), column_panels_ * 64);
  }

  void declare_constants() {
    k_.block = static_cast<int>(s_.groups * kGroup + 32);
    k_.constant("kBlock", k_.block);
    k_.constant("kGroups", s_.groups);
    k_.constant("kRows", rows_);
    k_.constant("kKeys", s_.keys);
    k_.constant("kDepth", (f_.depth + 15) / 16 * 16);
    k_.constant("kColumns", column_panels_ * 64);
    k_.constant("kStages", s_.stages);
    k_.constant("kPart", kAttentionPart);
    k_.constant("kStagingPad", kAttentionPad);
    k_.constant("kVector", s_.vector);
    k_.declare_type("constexpr float kLog2e = 1.44269504f;\n\n");
    k_.declare_type(
        fmt::format("struct Shared {{  // panels of 64 numbers first: the swizzle begins anew every 1024 bytes\n"
                    "  uint4 queries[{0}][kRows * 8];\n"
                    "  uint4 keys[kStages][{0}][kKeys * 8];\n"
                    "  uint4 values[kStages][{1}][kKeys * 8];\n"
                    "  float sums[kGroups * 4][16][kPart + kStagingPad];  // of each warp\n"
                    "  unsigned long long ready, full[kStages], empty[kStages];\n"
                    "}};\n",
                    depth_panels_, column_panels_));
    const int64_t bytes = attention_tma_bytes(s_, f_.depth, f_.columns);
    k_.hold(bytes, bytes);
    k_.resident = attention_tma_resident(s_, k_.region, f_.view);
    k_.constant("kResident", k_.resident);
    for (const char* helper :
         {"launch_shared_1024", "barrier_init", "barrier_init_visible", "barrier_arrive", "barrier_expect",
          "barrier_wait", "operand_rows128", "operand_columns128", "product_begin", "product_commit", "product_wait",
          "power_of_two", type_ == DType::bf16 ? "pack_bf16" : "pack_f16"})
      k_.use(helper);
    k_.use(scores_product());
    k_.use(values_product());
  }

  void declare_maps() {
    maps_ = attention_maps(k_.region, k_.layouts(), f_.view, s_);
    const auto add = [&](const char* name, const OperandMap& map) {
      k_.maps.emplace_back(name, map.map);
      k_.use(copy(map));
    };
    if (maps_->q) add("map_q", *maps_->q);
    add("map_k", maps_->k);
    add("map_v", maps_->v);
    if (!maps_->q)
      for (const char* helper : {"place", "async_fence", "group_sync"}) k_.use(helper);
  }

  static std::string copy(const OperandMap& map) { return fmt::format("copy_box_{}", map.map.sizes.size()); }

  /// The panels of a tile: boxes of 64 numbers from `row` on.
  void copy_panels(const OperandMap& map, const std::string& name, const std::string& to, int64_t panels,
                   const std::string& barrier, const std::string& row) {
    for (int64_t panel = 0; panel < panels; ++panel) {
      std::string at = fmt::format(", {}, {}", panel * 64, row);
      for (size_t d = 2; d < map.at.size(); ++d) {
        const IndexTerm& part = *map.at[d].part;
        Dim place = f_.batch[static_cast<size_t>(part.axis)];
        if (!(part.div == Dim(1))) place = floor_div(place, part.div);
        if (!(part.mod == Dim(0))) place = mod(place, part.mod);
        at += ", " + k_.text_of(place);
      }
      k_.line(fmt::format("{}({}[{}], &{}, &shared.{}{});", copy(map), to, panel, name, barrier, at));
    }
  }

  void produce() {
    if (maps_->q) {
      k_.line("barrier_expect(&shared.ready, (int)sizeof shared.queries);");
      copy_panels(*maps_->q, "map_q", "shared.queries", depth_panels_, "ready", "m0");
    }
    k_.line("int stage = 0, phase = 0;");
    k_.line("#pragma unroll 1");
    k_.open("for (int step = 0; step < steps; ++step)");
    k_.line("barrier_wait(&shared.empty[stage], phase ^ 1);");
    k_.line("barrier_expect(&shared.full[stage], (int)(sizeof shared.keys[0] + sizeof shared.values[0]));");
    copy_panels(maps_->k, "map_k", "shared.keys[stage]", depth_panels_, "full[stage]", "step * kKeys");
    copy_panels(maps_->v, "map_v", "shared.values[stage]", column_panels_, "full[stage]", "step * kKeys");
    next_stage(k_);
    k_.close();
  }

  FragmentTexts fragments() const {
    const auto of = [](const char* array) {
      return
          [array](const std::string& j, const std::string& e) { return fmt::format("{}[{} * 4 + {}]", array, j, e); };
    };
    return {of("score"), of("sum"), "row_of_warp", rows_, s_.keys};
  }

  void consume() {
    k_.line("const int lane = (int)threadIdx.x % 32;");
    k_.line("const int row_of_warp = (int)threadIdx.x / 32 * 16;");
    k_.line("float sum[kColumns / 2] = {};");
    declare_rows(k_);
    k_.line("int stage = 0, phase = 0;");
    maps_->q ? k_.line("barrier_wait(&shared.ready, 0);") : compute_queries();
    k_.line("#pragma unroll 1");
    k_.open("for (int t = 0; t < steps; ++t)");
    k_.line("barrier_wait(&shared.full[stage], phase);");
    multiply_keys();
    k_.line("product_wait<0>();");
    const FragmentTexts texts = fragments();
    change_scores(f_, texts);
    update_rows(k_, texts);
    multiply_values();
    k_.line("product_wait<0>();");
    k_.line("if (lane == 0) barrier_arrive(&shared.empty[stage]);");
    next_stage(k_);
    k_.close();
  }

  /// Queries that are more than a copy: eight numbers of a row a thread.
  void compute_queries() {
    const int64_t chunks = depth_panels_ * 8;
    k_.line("#pragma unroll");
    k_.open(fmt::format("for (int i = 0; i < {}; ++i)", kRowsOfGroup * chunks / kGroup));
    k_.line(fmt::format("const int row = group * 64 + (int)threadIdx.x % 128 / {} + i * {};", chunks, kGroup / chunks));
    k_.line(fmt::format("const int chunk = (int)threadIdx.x % {};", chunks));
    k_.line("alignas(16) unsigned short part[8] = {};");
    const Dim row = k_.declare_index("at", "m0 + row");
    std::string inside = f_.within(row, f_.queries, rows_);
    if (f_.depth % 64) inside += fmt::format("{}chunk < {}", inside.empty() ? "" : " && ", f_.depth / 8);
    if (!inside.empty()) k_.open("if (" + inside + ")");
    StageText::Point point = f_.score_at(row, 0, Kernel::local("chunk") * Dim(8));
    const Expr& query = f_.view.query;
    point.given = load_vectors(f_.scores, point, f_.view.depth, 8, reads_used(query), "8");
    k_.line("#pragma unroll");
    k_.open("for (int j = 0; j < 8; ++j)");
    Dim& at = point.env[static_cast<size_t>(f_.view.depth)];
    at = at + Kernel::local("j");
    ExprText text = f_.scores.at(point);
    k_.line(fmt::format("part[j] = {};", to_memory(k_, type_, text.emit(query, type_))));
    k_.close();
    if (!inside.empty()) k_.close();
    k_.line(
        fmt::format("*reinterpret_cast<uint4*>(&shared.queries[{}][place<8>(row, chunk{})]) = "
                    "*reinterpret_cast<const uint4*>(part);",
                    chunks == 8 ? "0" : "chunk / 8", chunks == 8 ? "" : " % 8"));
    k_.close();
    k_.line("async_fence();");
    k_.line("group_sync<128>(group + 1);");
  }

  /// A product's k are 32 bytes in a row: 2 in a descriptor.
  void multiply_keys() {
    k_.line("float score[kKeys / 2] = {};");
    k_.line("product_begin();");
    k_.line("#pragma unroll");
    k_.line("for (int k = 0; k < kDepth / 16; ++k)");
    k_.line(
        fmt::format("  {}(score, operand_rows128(&shared.queries[k / 4][group * 64 * 8]) + k % 4 * 2, "
                    "operand_rows128(&shared.keys[stage][k / 4][0]) + k % 4 * 2);",
                    scores_product()));
    k_.line("product_commit();");
  }

  /// A product's k are 16 keys, rows of 128 bytes.
  void multiply_values() {
    const char* pack = type_ == DType::bf16 ? "pack_bf16" : "pack_f16";
    k_.line("unsigned int weights[kKeys / 16][4];");
    k_.line("#pragma unroll");
    k_.open("for (int k = 0; k < kKeys / 16; ++k)");
    k_.line("#pragma unroll");
    k_.line(fmt::format(
        "for (int i = 0; i < 4; ++i) weights[k][i] = {}(score[k * 8 + i * 2], score[k * 8 + i * 2 + 1]);", pack));
    k_.close();
    k_.line("product_begin();");
    k_.line("#pragma unroll");
    k_.line("for (int k = 0; k < kKeys / 16; ++k)");
    k_.line(fmt::format("  {}(sum, weights[k], operand_columns128(&shared.values[stage][0][k * 16 * 8], kKeys * 128));",
                        values_product()));
    k_.line("product_commit();");
  }

  void epilogue() {
    k_.line("auto* staging = shared.sums[row_of_warp / 16];");
    k_.line("#pragma unroll");
    k_.open("for (int half = 0; half < 2; ++half)");
    finish_rows(f_);
    k_.line("#pragma unroll");
    k_.open("for (int j = 0; j < kColumns / 8; ++j)");
    for (const char* e : {"half * 2", "half * 2 + 1"})
      k_.line(fmt::format("sum[j * 4 + {0}] = {1};", e, f_.result(fmt::format("sum[j * 4 + {}]", e), "factor")));
    k_.close();
    k_.close();
    store_parts(k_, "kColumns", [&] {
      const Dim m = k_.declare_index("m", "m0 + row_of_warp + row");
      const Dim n = k_.declare_index("n", "part * kPart + column");
      store_staged(f_, m, n, {rows_, column_panels_ * 64, s_.vector});
    });
  }
};

}  // namespace

void emit_attention_tma(Kernel& k) { AttentionTma(k).emit(); }

}  // namespace opfuse::cuda
