// Elements at computed places: within a vector of each other they are one load, wherever that lies in the operand, and
// values are those of places apart.
#include "codegen/run_kernel.hpp"

namespace opfuse::test {
namespace {

/// result[row, i] = data[row, place(i)]
Case looked_up(const std::string& name, int64_t columns, const std::vector<int64_t>& places) {
  const std::string n = std::to_string(columns), m = std::to_string(places.size());
  Case c;
  c.name = name;
  c.region = "region\nparam input f32[3," + n + "]\nparam constant i64[" + m + "]\nparam output f32[3," + m +
             "]\nstage map\n  domain [3," + m + "]\n  read param 1 at [a1]\n  read param 0 at [a0, `r0:i64`]\n" +
             "  output param 2 f32[3," + m + "] at [a0, a1] = r1\n";
  c.operands = {Tensor(), Tensor::from_i64(places), Tensor()};
  return c;
}

template <class F>
std::vector<int64_t> places(int64_t count, F&& place) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(place(i));
  return all;
}

const std::vector<Case> kLookedUp = {
    looked_up("twice_each", 40, places(80, [](int64_t i) { return i / 2; })),
    looked_up("last_vector", 33, places(64, [](int64_t i) { return 32 - i % 8; })),
    looked_up("last_element", 33, places(64, [](int64_t) { return 32; })),
    looked_up("backwards", 64, places(64, [](int64_t i) { return 63 - i; })),
    looked_up("apart", 64, places(64, [](int64_t i) { return i * 29 % 64; })),
    looked_up("one_apart", 64, places(64, [](int64_t i) { return i % 8 == 5 ? 60 : i / 2; })),
    looked_up("vector_and_one", 64, places(64, [](int64_t i) { return i % 8 == 7 ? i / 8 * 4 + 8 : i / 8 * 4; })),
    looked_up("less_than_a_vector", 5, places(64, [](int64_t i) { return i % 5; })),
    looked_up("part_of_a_vector", 40, places(43, [](int64_t i) { return i * 39 / 42; })),
};
OPFUSE_CASES(LookedUp, kLookedUp);

}  // namespace
}  // namespace opfuse::test
