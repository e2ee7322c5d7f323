// The cases that results, registers and mutations are tested with hold every schedule that can be chosen.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "cuda/emulated.hpp"

namespace opfuse::test {
namespace {

std::string skeleton_and_knobs(const Schedule& s) {
  if (s.get("mma_m", 0) > 0)
    return fmt::format("mma {}x{}x{} warp {} stages {} copies {}{} vector {}", s.get("mma_m", 0), s.get("mma_n", 0),
                       s.get("mma_k", 0), s.get("warp", 0), s.get("stages", 0), s.get("copy_a", 0), s.get("copy_b", 0),
                       s.get("vector", 1));
  if (s.get("tile_m", 0) > 0) return fmt::format("tiles {} deep {}", s.get("tile_m", 0), s.get("tile_k", 0));
  if (s.skeleton == "depthwise") return fmt::format("depthwise columns {}", s.get("columns", 0));
  if (s.skeleton == "attention") return fmt::format("attention {} x {}", s.get("rows", 0), s.get("keys", 0));
  if (s.skeleton == "attention_mma")
    return fmt::format("attention_mma warps {} copies {}{}{} vector {}", s.get("warps", 0), s.get("copy_q", 0),
                       s.get("copy_k", 0), s.get("copy_v", 0), s.get("vector", 1));
  return fmt::format("rows team {} vector {}{}{}", s.get("team", 1), s.get("vector", 1),
                     s.get("across", 0) > 0 ? " across" : "",
                     s.get("per_thread", 0) > 0 ? " kept"
                     : s.get("held", 0) > 0     ? " held"
                                                : "");
}

TEST(Schedules, each_that_can_be_chosen_is_among_the_cases) {
  std::set<std::string> tested, all;
  for (const KernelSpec& spec : specs_of(all_cases(), emulated_target()))
    tested.insert(skeleton_and_knobs(spec.schedule));
  for (const char* tile : {"64x64x64 warp 32 stages 3", "128x64x32 warp 64 stages 4", "128x128x32 warp 64 stages 4"})
    for (const char* copies : {"00", "01", "10", "11"})
      for (int vector : {1, 8}) all.insert(fmt::format("mma {} copies {} vector {}", tile, copies, vector));
  for (const char* how :
       {"64x64x32 warp 32 stages 3 copies 11 vector 4", "128x64x16 warp 64 stages 4 copies 11 vector 4",
        "128x128x16 warp 64 stages 4 copies 11 vector 4", "64x64x32 warp 32 stages 3 copies 00 vector 4",
        "64x64x32 warp 32 stages 3 copies 00 vector 1", "128x64x16 warp 64 stages 4 copies 01 vector 4",
        "128x128x16 warp 64 stages 4 copies 10 vector 1"})
    all.insert(fmt::format("mma {}", how));                         // tf32
  all.insert("mma 64x64x128 warp 32 stages 3 copies 11 vector 8");  // taps of 128 channels and more
  for (const char* how : {"11 vector 8", "01 vector 8", "00 vector 1"})
    all.insert(fmt::format("mma 64x64x64 warp 32 stages 4 copies {}", how));  // no window
  all.insert("mma 64x64x64 warp 32 stages 5 copies 11 vector 8");
  all.insert("mma 64x64x32 warp 32 stages 4 copies 11 vector 4");
  all.insert("mma 128x64x16 warp 64 stages 4 copies 00 vector 4");  // a stem in tf32
  for (int tile : {32, 64, 128})
    for (int depth : {8, 16}) all.insert(fmt::format("tiles {} deep {}", tile, depth));
  for (int vector : {1, 2, 4, 8}) all.insert(fmt::format("rows team 1 vector {}", vector));
  for (int columns : {2, 4, 7, 8}) all.insert(fmt::format("depthwise columns {}", columns));
  for (const char* tile : {"64 x 64", "64 x 32", "32 x 32", "16 x 16"}) all.insert(fmt::format("attention {}", tile));
  all.insert("attention_mma warps 8 copies 111 vector 8");
  for (const char* how : {"000 vector 1", "001 vector 8", "101 vector 8", "110 vector 1", "111 vector 8"})
    all.insert(fmt::format("attention_mma warps 4 copies {}", how));
  for (int team : {8, 16, 32}) all.insert(fmt::format("rows team {} vector 1 across kept", team));
  all.insert("rows team 32 vector 1");        // rows side by side, too few for a thread each
  all.insert("rows team 256 vector 1 held");  // open length
  for (int vector : {1, 2, 4, 8})
    for (const char* row : {"32 kept", "256 kept", "256", "512 held", "1024 held"}) {
      const std::string text = row;
      const size_t space = std::min(text.find(' '), text.size());
      all.insert(fmt::format("rows team {} vector {}{}", text.substr(0, space), vector, text.substr(space)));
    }
  const auto only_of = [](const std::set<std::string>& these, const std::set<std::string>& those) {
    std::set<std::string> rest;
    std::set_difference(these.begin(), these.end(), those.begin(), those.end(), std::inserter(rest, rest.end()));
    return rest;
  };
  EXPECT_THAT(only_of(tested, all), testing::IsEmpty());
  EXPECT_THAT(only_of(all, tested), testing::IsEmpty());
}

const CudaCase& row_case(const std::string& name) {
  for (const CudaCase& c : row_cases())
    if (c.name == name) return c;
  throw std::runtime_error("no case " + name);
}

TEST(Schedules, rows_stay_in_registers_as_long_as_all_their_operands_fit) {
  const auto kept = [](const std::string& name) {
    return spec_of(row_case(name), emulated_target()).schedule.get("per_thread", 0);
  };
  EXPECT_EQ(kept("softmax_most_registers"), 32);
  EXPECT_EQ(kept("softmax_longer"), 0);
  EXPECT_EQ(kept("rows_of_three"), 32);
  EXPECT_EQ(kept("rows_of_four"), 0);
  EXPECT_EQ(kept("rows_of_four_half_as_long"), 17);
  EXPECT_EQ(kept("rows_of_four_short"), 4) << "as many more threads as it takes";
}

/// Guards and indices are evaluated once: registers or shared memory hold what they lead to.
TEST(Schedules, rows_behind_a_gather_or_a_concatenation_are_read_once) {
  for (const char* name : {"joined", "joined_prime", "joined_held", "joined_half", "chosen", "chosen_held"}) {
    const KernelSpec spec = spec_of(row_case(name), emulated_target());
    EXPECT_THAT(cuda::write_kernel(spec, emulated_target()).reading, testing::StartsWith("each row is read once"))
        << name;
  }
}

TEST(Schedules, longer_rows_are_held_in_the_shared_memory_of_the_architecture) {
  const auto held = [](const std::string& name, const char* target) {
    return spec_of(row_case(name), parse_target(target)).schedule.get("held", 0);
  };
  EXPECT_EQ(held("softmax_most_registers", "cuda:emulated"), 0);
  EXPECT_EQ(held("softmax_longer", "cuda:emulated"), 9001);
  EXPECT_EQ(held("softmax_held_most", "cuda:emulated"), 25088);
  EXPECT_EQ(held("softmax_too_long", "cuda:emulated"), 0);
  EXPECT_EQ(held("softmax_too_long", "cuda:sm_86"), 0);
  EXPECT_EQ(held("softmax_too_long", "cuda:sm_80"), 25089);
  EXPECT_EQ(held("softmax_open", "cuda:sm_86"), 25088);
  EXPECT_EQ(held("softmax_open", "cuda:sm_80"), 41472);
  EXPECT_EQ(held("softmax_open", "cuda:sm_90a"), 57856);
  EXPECT_EQ(held("masked_open", "cuda:sm_90a"), 38570) << "six bytes an element";
  EXPECT_EQ(held("max_longest", "cuda:sm_90a"), 0) << "one pass reads it";
  EXPECT_EQ(held("sum_open", "cuda:sm_90a"), 0) << "one pass reads it";
}

TEST(Schedules, how_often_rows_are_read_is_said) {
  const auto reading = [](const std::string& name) {
    return cuda::write_kernel(spec_of(row_case(name), emulated_target()), emulated_target()).reading;
  };
  EXPECT_EQ(reading("sum_long"), "each row is read once");
  EXPECT_EQ(reading("softmax_registers"), "each row is read once and kept in registers, 32 elements a thread");
  EXPECT_EQ(reading("softmax_longer"), "each row is read once and held in 36004 bytes of shared memory");
  EXPECT_EQ(
      reading("softmax_too_long"),
      "each row is read 3 times: 25089 elements of 4 bytes are more than the 100352 bytes of shared memory that a "
      "block has on cuda:emulated");
  EXPECT_EQ(reading("softmax_open"),
            "rows of up to 25088 elements are read once and held in shared memory; longer ones are read 3 times, since "
            "a block has 100352 bytes of it on cuda:emulated");
  EXPECT_EQ(reading("softmax_short"),
            "each row is read 3 times: one thread goes along it, beside those of the "
            "neighbouring rows");
  EXPECT_EQ(reading("centred_held"), "each row is read once and held in 36004 bytes of shared memory");
}

TEST(Schedules, a_limit_is_what_reads_rows_more_than_once) {
  const auto limit = [](const std::string& name) {
    return cuda::limit_of(spec_of(row_case(name), emulated_target()), emulated_target());
  };
  EXPECT_EQ(limit("softmax_longer"), "");
  EXPECT_THAT(limit("softmax_too_long"), testing::StartsWith("each row is read 3 times"));
  EXPECT_THAT(limit("layer_norm_open"), testing::StartsWith("rows of up to 25088"));
}

}  // namespace
}  // namespace opfuse::test
