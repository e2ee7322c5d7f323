// The cases that results, registers and mutations are tested with hold every schedule that can be chosen.
#include <fmt/format.h>

#include <set>

#include "cuda/emulated.hpp"

namespace opfuse::test {
namespace {

std::string skeleton_and_knobs(const Schedule& s) {
  if (s.get("mma_m", 0) > 0)
    return fmt::format("mma {}x{} stages {} copies {}{} vector {}", s.get("mma_m", 0), s.get("mma_n", 0),
                       s.get("stages", 0), s.get("copy_a", 0), s.get("copy_b", 0), s.get("vector", 1));
  if (s.get("tile_m", 0) > 0) return fmt::format("tiles {} deep {}", s.get("tile_m", 0), s.get("tile_k", 0));
  return fmt::format("rows team {} vector {}{}", s.get("team", 1), s.get("vector", 1),
                     s.get("per_thread", 0) > 0 ? " kept" : "");
}

TEST(Schedules, each_that_can_be_chosen_is_among_the_cases) {
  std::set<std::string> tested, all;
  for (const KernelSpec& spec : specs_of(all_cases(), emulated_target()))
    tested.insert(skeleton_and_knobs(spec.schedule));
  for (const char* tile : {"64x64 stages 3", "128x64 stages 2"})
    for (const char* copies : {"00", "01", "10", "11"})
      for (int vector : {1, 8}) all.insert(fmt::format("mma {} copies {} vector {}", tile, copies, vector));
  for (int tile : {32, 64, 128})
    for (int depth : {8, 16}) all.insert(fmt::format("tiles {} deep {}", tile, depth));
  for (int vector : {1, 2, 4, 8}) all.insert(fmt::format("rows team 1 vector {}", vector));
  for (int team : {32, 256})
    for (const char* kept : {"", " kept"}) all.insert(fmt::format("rows team {} vector 1{}", team, kept));
  EXPECT_EQ(tested, all);
}

TEST(Schedules, rows_stay_in_registers_as_long_as_all_their_operands_fit) {
  const auto kept = [](const std::string& name) {
    for (const CudaCase& c : row_cases())
      if (c.name == name) return spec_of(c, emulated_target()).schedule.get("per_thread", 0);
    ADD_FAILURE() << name;
    return int64_t{-1};
  };
  EXPECT_EQ(kept("softmax_most_registers"), 32);
  EXPECT_EQ(kept("softmax_longer"), 0);
  EXPECT_EQ(kept("rows_of_three"), 32);
  EXPECT_EQ(kept("rows_of_four"), 0);
  EXPECT_EQ(kept("rows_of_four_half_as_long"), 17);
}

}  // namespace
}  // namespace opfuse::test
