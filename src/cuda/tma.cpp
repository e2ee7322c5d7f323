// Contraction on Hopper's tensor cores by blocks that stay (sm_90a): each takes one tile after the other.
//
//   group 0           copies boxes of both operands into a ring of stages, as soon as a stage is empty; an operand that
//                     is no tensor map it fills by copies of 16 bytes a thread, or element by element
//   groups 1, 2, ...  wait until a stage is full, multiply 64 x kTileN x 64 of it each (wgmma), and say that it is
//   empty full[s], empty[s] barriers of phases: full counts the bytes of the copies, empty an arrival of each warp
//
// The copies of the next tile's first steps run while the sums of this one are stored: through rows of 32 columns for
// each warp, in which 8 neighbours become 16 bytes, and from there to memory as boxes too, where the result is one.
#include "cuda/tma.hpp"

#include <fmt/format.h>

#include "cuda/copy_engine_text.hpp"
#include "cuda/emitters.hpp"
#include "cuda/mma_tiles.hpp"
#include "cuda/operand_maps.hpp"
#include "cuda/schedules.hpp"

namespace opfuse::cuda {
namespace {

constexpr int64_t kChunks = 8, kGroup = 128, kRows = 64;  // 128 bytes of k a step

class Tma : MmaTiles {
 public:
  explicit Tma(Kernel& k) : Tma(k, typed<TmaSchedule>(k.spec.schedule)) {}

  void emit() {
    declare_constants();
    declare_maps();
    k_.line("Shared& shared = *reinterpret_cast<Shared*>(launch_shared_1024());");
    k_.line("const int group = (int)threadIdx.x / 128;  // 0 copies, the others multiply 64 rows each");
    begin_barriers(k_, !fills() ? "1" : mapped() ? "kFillers + 1" : "kFillers");
    k_.open("if (group == 0)");
    fills() ? fill_stages() : produce();
    k_.line("return;");
    k_.close();
    consume();
  }

 private:
  TmaSchedule schedule_;
  int64_t groups_;
  std::optional<OperandMap> map_a_, map_b_, map_y_;

  Tma(Kernel& k, const TmaSchedule& s)
      : MmaTiles(k,
                 {s.mma_m, s.mma_n, depth_of(k), kGroup, s.copy_a > 0, s.copy_b > 0, !s.map_a, !s.map_b, "kFillers"}),
        schedule_(s),
        groups_(s.mma_m / kRows) {}

  bool fills() const { return !schedule_.map_a || !schedule_.map_b; }
  bool mapped() const { return schedule_.map_a || schedule_.map_b; }
  bool gives_registers() const { return groups_ > 1 && !fills(); }

  std::string product() const { return fmt::format("product_{}_{}", name_of(type_), schedule_.mma_n); }

  void declare_constants() {
    k_.block = static_cast<int>(kGroup * (groups_ + 1));
    k_.resident = groups_ == 1 && schedule_.mma_n < 256 ? 2 : 1;
    k_.constant("kTileM", frame_.tile_m);
    k_.constant("kTileN", frame_.tile_n);
    k_.constant("kTileK", frame_.tile_k);
    k_.constant("kChunks", kChunks);
    k_.constant("kStages", schedule_.stages);
    k_.constant("kGroups", groups_);
    k_.constant("kPart", kTmaPart);
    k_.constant("kStagingPad", kTmaPad);
    k_.constant("kVector", schedule_.vector);
    k_.constant("kBlock", k_.block);
    k_.constant("kResident", k_.resident);
    k_.declare_type(
        fmt::format("struct Shared {{  // tiles first: the swizzle begins anew every 1024 bytes\n"
                    "  uint4 a[kStages][kTileM * kChunks];  // 16 bytes, {1} k, at place(row, k / {1})\n"
                    "  uint4 b[kStages][kTileN * kChunks];\n"
                    "{0}"
                    "  float sums[kGroups * 4][16][kPart + kStagingPad];  // of each warp\n"
                    "  unsigned long long full[kStages], empty[kStages];\n"
                    "}};\n",
                    schedule_.map_y ? "  uint4 y[kTileN / 64][kTileM * kChunks];  // 64 columns a box\n" : "", chunk_));
    const int64_t bytes = tma_shared_bytes(schedule_);
    k_.hold(bytes, bytes);
    k_.grid = min(Dim(schedule_.blocks), frame_.blocks());
    for (const char* helper :
         {"launch_shared_1024", "barrier_init", "barrier_init_visible", "barrier_arrive", "barrier_expect",
          "barrier_wait", "operand_rows128", "product_begin", "product_commit", "product_wait"})
      k_.use(helper);
    k_.use(product());
    if (gives_registers())
      for (const char* helper : {"registers_down", "registers_up"}) k_.use(helper);
    if (fills()) {
      k_.constant("kFillers", kGroup);
      for (const char* helper : {"place", "async_fence"}) k_.use(helper);
    }
    if (copies_)
      for (const char* helper : {"copy_16", "copy_commit", "copy_wait"}) k_.use(helper);
    if (schedule_.map_y)
      for (const char* helper : {"place", "store_commit", "store_wait_read", "group_sync", "async_fence"})
        k_.use(helper);
  }

  void declare_maps() {
    const auto describe = fills() ? map_of_flat_operand : map_of_operand;
    if (schedule_.map_a) map_a_ = describe(k_.region, k_.layouts(), view_, view_.a, view_.m, frame_.tile_m);
    if (schedule_.map_b) map_b_ = describe(k_.region, k_.layouts(), view_, view_.b, view_.n, frame_.tile_n);
    if (map_a_) k_.maps.emplace_back("map_a", map_a_->map);
    if (map_b_) k_.maps.emplace_back("map_b", map_b_->map);
    if (!schedule_.map_y) return;
    map_y_ = map_of_result(k_.region, k_.layouts(), view_, kRows);
    k_.maps.emplace_back("map_y", map_y_->map);
    k_.use(fmt::format("store_box_{}", map_y_->map.sizes.size()));
  }

  void open_tiles() {
    k_.line("#pragma unroll 1");
    k_.open(fmt::format("for ({0} tile = ({0})blockIdx.x; tile < {1}; tile += ({0})gridDim.x)", k_.index_type(),
                        k_.text_of(frame_.blocks())));
  }

  StageText::Point place() {
    StageText::Point point{Env(static_cast<size_t>(s_.axis_count()), Dim(0))};
    frame_.place(TileFrame::First::columns, Kernel::local("tile"), point);  // neighbouring blocks share rows of A
    return point;
  }

  /// ", i0, i1, ..." of a box, and of an image the element of the window.
  std::string coordinates(const OperandMap& map, const std::string& row, const Env& env) {
    const auto sum = [&](const Dim& offset, const std::vector<std::pair<int, int64_t>>& terms) {
      Dim all = offset;
      for (const auto& [axis, times] : terms) all = all + env[static_cast<size_t>(axis)] * Dim(times);
      return k_.text_of(all);
    };
    std::string text;
    for (const auto& at : map.at)
      text += ", " + (at.along == OperandMap::Along::rows    ? row
                      : at.along == OperandMap::Along::depth ? "step * kTileK"
                                                             : sum(at.offset, at.terms));
    if (map.map.image())
      for (size_t d = 1; d + 1 < map.at.size(); ++d) text += ", " + sum(0, map.at[d].window);
    return text;
  }

  /// The bytes that a stage waits for, and the copies that bring them.
  void copy_boxes(const Env& env) {
    std::string bytes;
    for (const auto& [map, name] : {std::pair(&map_a_, "a"), std::pair(&map_b_, "b")})
      if (*map) bytes += fmt::format("{}sizeof shared.{}[0]", bytes.empty() ? "" : " + ", name);
    k_.line(fmt::format("barrier_expect(&shared.full[stage], (int)({}));", bytes));
    if (map_a_) copy(*map_a_, "a", "m0", env);
    if (map_b_) copy(*map_b_, "b", "n0", env);
  }

  void copy(const OperandMap& map, const std::string& name, const std::string& row, const Env& env) {
    const std::string helper = fmt::format("copy_{}_{}", map.map.image() ? "pixels" : "box", map.map.sizes.size());
    k_.use(helper);
    k_.line(fmt::format("{}(shared.{}[stage], &map_{}, &shared.full[stage]{});", helper, name, name,
                        coordinates(map, row, env)));
  }

  void produce() {
    if (gives_registers()) k_.line("registers_down<40>();");
    k_.open("if (threadIdx.x == 0)");
    k_.line("int stage = 0, phase = 0;");
    open_tiles();
    StageText::Point point = place();
    for (const auto& [map, axes, row] : {std::tuple(&map_a_, &view_.m, "m0"), std::tuple(&map_b_, &view_.n, "n0")})
      if ((*map)->map.image()) s_.decode(Kernel::local(row), *axes, point.env);
    size_t loops = 0;
    for (size_t i = 0; i + 1 < view_.k.size(); ++i) {
      const int axis = view_.k[i];
      if (s_.extent(axis) == Dim(1)) continue;
      const std::string name = k_.fresh(fmt::format("a{}", axis));
      k_.line("#pragma unroll 1");
      k_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", name, k_.text_of(s_.extent(axis))));
      point.env[static_cast<size_t>(axis)] = Kernel::local(name);
      ++loops;
    }
    k_.line("#pragma unroll 1");
    k_.open(fmt::format("for (int k = 0; k < {}; k += kTileK)", k_.text_of(s_.extent(view_.k.back()))));
    point.env[static_cast<size_t>(view_.k.back())] = Kernel::local("k");
    k_.line("barrier_wait(&shared.empty[stage], phase ^ 1);");
    copy_boxes(point.env);
    next_stage(k_);
    k_.close();
    while (loops-- > 0) k_.close();
    k_.close();
    k_.close();
  }

  /// All threads of the group fill what is no tensor map. Copies of 16 bytes are waited for kStages - 2 steps later: a
  /// stage is empty only when the step behind it is full.
  void fill_stages() {
    k_.line("int stage = 0, phase = 0;");
    open_tiles();
    const StageText::Point point = place();
    declare_fill(point);
    k_.line(gathers() ? "#pragma unroll" : "#pragma unroll 1");
    k_.open(fmt::format("for ({} step = 0; step < steps; ++step)", k_.index_type()));
    k_.line("barrier_wait(&shared.empty[stage], phase ^ 1);");
    k_.line("fill(step, stage);");
    if (mapped()) {
      k_.open("if (threadIdx.x == 0)");
      copy_boxes(point.env);
      k_.close();
    }
    if (copies_) {
      k_.line("copy_commit();");
      k_.open("if (step >= kStages - 2)");
      k_.line("copy_wait<kStages - 2>();");
      k_.line("async_fence();");
      k_.line("barrier_arrive(&shared.full[(stage + 2) % kStages]);  // of kStages - 2 steps ago");
      k_.close();
    } else {
      k_.line("async_fence();");
      k_.line("barrier_arrive(&shared.full[stage]);");
    }
    next_stage(k_);
    k_.close();
    if (copies_) {
      k_.line("copy_wait<0>();");
      k_.line("async_fence();");
      k_.line("const int left = steps < kStages - 2 ? (int)steps : kStages - 2;");
      k_.line("for (int s = left; s > 0; --s) barrier_arrive(&shared.full[(stage + kStages - s) % kStages]);");
    }
    k_.close();
  }

  Dim steps() const {
    if (fills()) return ceil_div(frame_.k, Dim(frame_.tile_k));
    std::vector<int> taps(view_.k.begin(), view_.k.end() - 1);
    return s_.elements(taps) * ceil_div(s_.extent(view_.k.back()), Dim(frame_.tile_k));
  }

  void consume() {
    if (gives_registers()) k_.line("registers_up<232>();");
    k_.line("const int lane = (int)threadIdx.x % 32;");
    k_.line("const int first = (group - 1) * 64;  // row of the group in a tile");
    k_.line("const int row_of_warp = first + (int)threadIdx.x / 32 % 4 * 16;");
    k_.line("auto* staging = shared.sums[row_of_warp / 16];");
    k_.line("int stage = 0, phase = 0;");
    open_tiles();
    const StageText::Point point = place();
    k_.line("float sum[kTileN / 2] = {};");
    k_.line("#pragma unroll 1");
    k_.open(fmt::format("for (int step = 0; step < {}; ++step)", k_.text_of(steps())));
    k_.line("barrier_wait(&shared.full[stage], phase);");
    k_.line("const unsigned long long a = operand_rows128(&shared.a[stage][first * kChunks]);");
    k_.line("const unsigned long long b = operand_rows128(&shared.b[stage][0]);");
    k_.line("product_begin();");
    k_.line("#pragma unroll");
    k_.line(fmt::format("for (int k = 0; k < kTileK / {}; ++k) {}(sum, a + k * 2, b + k * 2);", product_depth(),
                        product()));
    k_.line("product_commit();");
    k_.line("product_wait<1>();  // the step before is multiplied");
    k_.line("if (step > 0 && lane == 0) barrier_arrive(&shared.empty[stage == 0 ? kStages - 1 : stage - 1]);");
    next_stage(k_);
    k_.close();
    k_.line("product_wait<0>();");
    k_.line("if (lane == 0) barrier_arrive(&shared.empty[stage == 0 ? kStages - 1 : stage - 1]);");
    epilogue(point);
    k_.close();
    if (schedule_.map_y) k_.line("if (threadIdx.x % 128 == 0) store_wait_read<0>();");
  }

  void epilogue(const StageText::Point& point) {
    if (schedule_.map_y) {
      k_.line("if (threadIdx.x % 128 == 0) store_wait_read<0>();  // boxes of the tile before");
      k_.line("group_sync<128>(group);");
    }
    StoreVector to_box;
    if (schedule_.map_y)
      to_box = [](const std::string& array) {
        return fmt::format(
            "*reinterpret_cast<uint4*>(&shared.y[(part * kPart + column) / 64][place<kChunks>(row_of_warp + row, (part "
            "* "
            "kPart + column) % 64 / 8)]) = *reinterpret_cast<const uint4*>({});",
            array);
      };
    store_parts(k_, "kTileN", [&] {
      store(point, "m0 + row_of_warp + row", "n0 + part * kPart + column", schedule_.vector, to_box);
    });
    if (!schedule_.map_y) return;
    k_.line("async_fence();");
    k_.line("group_sync<128>(group);");
    k_.open("if (threadIdx.x % 128 == 0)");
    std::string at;  // behind columns and rows
    for (size_t d = 2; d < map_y_->at.size(); ++d) {
      Dim sum = 0;
      for (const auto& [axis, times] : map_y_->at[d].terms)
        sum = sum + point.env[static_cast<size_t>(axis)] * Dim(times);
      at += ", " + k_.text_of(sum);
    }
    k_.line("#pragma unroll");
    k_.open("for (int box = 0; box < kTileN / 64; ++box)");
    k_.line(fmt::format("store_box_{}(&map_y, &shared.y[box][first * kChunks], n0 + box * 64, m0 + first{});",
                        map_y_->map.sizes.size(), at));
    k_.close();
    k_.line("store_commit();");
    k_.close();
  }
};

}  // namespace

int64_t tma_shared_bytes(const TmaSchedule& s) {
  const int64_t tiles = s.stages * (s.mma_m + s.mma_n) * kChunks * 16, result = s.map_y ? s.mma_m * s.mma_n * 2 : 0;
  const int64_t sums = s.mma_m / 16 * 16 * (kTmaPart + kTmaPad) * 4;
  return tiles + result + sums + s.stages * 16;
}

void emit_tma(Kernel& k) { Tma(k).emit(); }

}  // namespace opfuse::cuda
