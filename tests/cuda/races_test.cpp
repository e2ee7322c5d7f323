// Races on shared memory are found by what barriers order, not by luck: each of these kernels runs once, in one order.
#include <fmt/format.h>

#include "cuda/emulated.hpp"
#include "device/shared_races.hpp"

namespace opfuse::test {
namespace {

using Access = cuda::SharedRaces::Access;

struct RacyKernel {
  std::string name, body;
  std::string race;  ///< what its error says; empty: it has none
};

/// 64 threads; x and y have 64 floats, 1024 bytes each.
const std::vector<RacyKernel>& kernels() {
  static const std::vector<RacyKernel> all = {
      {"neighbour", "tile[t] = x[t]; y[t] = tile[63 - t];", "reads"},
      {"neighbour_after_barrier", "tile[t] = x[t]; __syncthreads(); y[t] = tile[63 - t];", ""},
      {"own", "tile[t] = x[t]; y[t] = tile[t];", ""},
      {"write_behind_read", "tile[t] = x[t]; __syncthreads(); y[t] = tile[63 - t]; tile[t] = 0.0f;", "writes"},
      {"both_write", "tile[t / 2] = x[t]; __syncthreads(); y[t] = tile[t / 2];", "writes"},
      {"lane_after_warp_barrier", "tile[t] = x[t]; __syncwarp(); y[t] = tile[t ^ 1];", ""},
      {"warp_barrier_between_warps", "tile[t] = x[t]; __syncwarp(); y[t] = tile[t ^ 32];", "reads"},
      {"shuffle_is_no_barrier", "tile[t] = x[t]; __shfl_xor_sync(0xffffffffu, x[t], 1); y[t] = tile[t ^ 1];", "reads"},
      {"vector_store",
       "if (t < 16) *reinterpret_cast<uint4*>(tile + t * 4) = "
       "*reinterpret_cast<const uint4*>(x + t * 4); y[t] = tile[t];",
       "reads"},
      {"vector_store_after_barrier",
       "if (t < 16) *reinterpret_cast<uint4*>(tile + t * 4) = *reinterpret_cast<const uint4*>(x + t * 4); "
       "__syncthreads(); y[t] = tile[t];",
       ""},
      {"copy_unwaited",
       "if (t < 16) copy_16(tile + t * 4, x + t * 4, 16); copy_commit(); __syncthreads(); "
       "y[t] = tile[t];",
       "copies to"},
      {"copy_without_barrier",
       "if (t < 16) copy_16(tile + t * 4, x + t * 4, 16); copy_commit(); copy_wait<0>(); "
       "y[t] = tile[t];",
       "reads"},
      {"copy",
       "if (t < 16) copy_16(tile + t * 4, x + t * 4, 16); copy_commit(); copy_wait<0>(); "
       "__syncthreads(); y[t] = tile[t];",
       ""},
      {"copy_of_the_group_behind",
       "if (t < 16) copy_16(tile + t * 4, x + t * 4, 16); copy_commit(); copy_wait<1>(); __syncthreads(); "
       "y[t] = tile[t];",
       "copies to"},
      {"refill_in_front_of_the_barrier",
       "tile[t] = x[t]; __syncthreads(); y[t] = tile[63 - t]; if (t < 16) copy_16(tile + t * 4, x + t * 4, 16); "
       "copy_commit(); copy_wait<0>();",
       "copies to"},
      {"own_refill_behind_own_read",
       "if (t < 16) { *reinterpret_cast<uint4*>(tile + t * 4) = *reinterpret_cast<const uint4*>(x + t * 4); "
       "*reinterpret_cast<uint4*>(y + t * 4) = *reinterpret_cast<const uint4*>(tile + t * 4); "
       "copy_16(tile + t * 4, x + t * 4, 16); copy_commit(); copy_wait<0>(); }",
       ""},
      {"matrix",
       "unsigned int r[4]; tile[t] = x[t]; ldmatrix_x4(r, tile + t % 16 * 4); "
       "y[t] = __uint_as_float(r[0] ^ r[1] ^ r[2] ^ r[3]);",
       "reads"},
      {"launch_memory",
       "float* given = reinterpret_cast<float*>(launch_shared()); given[t] = x[t]; "
       "y[t] = given[63 - t];",
       "reads"},
      {"launch_memory_after_barrier",
       "float* given = reinterpret_cast<float*>(launch_shared()); given[t] = x[t]; "
       "__syncthreads(); y[t] = given[63 - t];",
       ""},
  };
  return all;
}

cuda::KernelText text_of(const RacyKernel& k) {
  cuda::KernelText text;
  text.symbol = "racy_" + k.name;
  text.function = fmt::format(
      "extern \"C\" __global__ void {}(const float* x, float* y) {{\n"
      "  __shared__ __align__(16) float tile[64];\n  const int t = (int)threadIdx.x;\n  {}\n}}\n",
      text.symbol, k.body);
  text.arguments = {{"const float*", "x"}, {"float*", "y"}};
  return text;
}

TEST(SharedRaces, each_planted_one_is_found_in_the_first_run) {
  std::vector<cuda::KernelText> texts;
  for (const RacyKernel& k : kernels()) texts.push_back(text_of(k));
  const cuda::EmulatedModule module(cuda::compile_for_emulation(texts));
  alignas(16) float x[64] = {}, y[64];
  for (const RacyKernel& k : kernels()) {
    void *in = x, *out = y, *arguments[] = {&in, &out};
    std::string found;
    try {
      module.launch(module.find("racy_" + k.name), {.grid = 1, .block = 64, .shared = 256}, arguments, 1);
    } catch (const cuda::EmulationError& e) {
      found = e.message;
    }
    EXPECT_EQ(found.find("a race: ") == 0, !k.race.empty()) << k.name << ": " << found;
    EXPECT_THAT(found, testing::HasSubstr(k.race)) << k.name;
  }
}

TEST(SharedRaces, all_readers_since_the_last_write_count) {
  cuda::SharedRaces races;
  races.start(96, 16);
  races.touch(0, 0, 4, Access::write);
  races.block_barrier();
  for (unsigned t : {1u, 40u, 70u}) races.touch(t, 0, 4, Access::read);
  races.warp_barrier(2);
  EXPECT_EQ(races.found(), "");
  races.touch(71, 0, 4, Access::write);  // thread 70 is before it, 1 and 40 are not
  EXPECT_THAT(races.found(), testing::HasSubstr("thread 71 writes byte 0"));
  races.start(96, 16);
  for (unsigned t : {1u, 40u, 70u}) races.touch(t, 0, 4, Access::read);
  races.block_barrier();
  races.touch(71, 0, 4, Access::write);
  EXPECT_EQ(races.found(), "");
}

}  // namespace
}  // namespace opfuse::test
