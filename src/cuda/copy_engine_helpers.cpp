// Hopper's copy engine (TMA), barriers of phases (mbarrier) and what else roles of warps need, as PTX. The emulation
// has the same names (emulation_hopper.h).
#include <fmt/format.h>

#include "cuda/helpers.hpp"

namespace opfuse::cuda {
namespace {

/// "%1, %2" for operands first..first + count - 1.
std::string operands(int first, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}%{}", i ? ", " : "", first + i);
  return text;
}

std::string coordinates(int rank, const char* type, const char* prefix) {
  std::string text;
  for (int i = 0; i < rank; ++i) text += fmt::format(", {}{}{}", type, prefix, i);
  return text;
}

std::string inputs(int rank, const char* constraint, const char* prefix) {
  std::string text;
  for (int i = 0; i < rank; ++i) text += fmt::format(", \"{}\"({}{})", constraint, prefix, i);
  return text;
}

Helper copy_box(int rank) {
  return {
      fmt::format("copy_box_{}", rank),
      fmt::format("// A box of a tensor to shared memory, counted on `b`; zeros where the tensor ends.\n"
                  "__device__ __forceinline__ void copy_box_{0}(void* to, const TensorMap* map, unsigned long long* "
                  "b{1}) {{\n"
                  "  asm volatile(\n"
                  "      \"cp.async.bulk.tensor.{0}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
                  "[%1, {{{2}}}], [%{3}];\" ::\"r\"(shared_address(to)),\n"
                  "      \"l\"(map){4}, \"r\"(shared_address(b))\n"
                  "      : \"memory\");\n}}\n",
                  rank, coordinates(rank, "int ", "i"), operands(2, rank), 2 + rank, inputs(rank, "r", "i")),
      {"TensorMap", "shared_address"},
      true};
}

/// Coordinates of the first pixel's channel, place and image, then of the element of the window.
Helper copy_pixels(int rank) {
  const int window = rank - 2;
  return {
      fmt::format("copy_pixels_{}", rank),
      fmt::format("// Channels of as many pixels as the map says, from one on, each moved by d; zeros outside.\n"
                  "__device__ __forceinline__ void copy_pixels_{0}(void* to, const TensorMap* map, unsigned long "
                  "long* b{1}{2}) {{\n"
                  "  asm volatile(\n"
                  "      \"cp.async.bulk.tensor.{0}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
                  "[%1, {{{3}}}], [%{4}], {{{5}}};\" ::\"r\"(shared_address(to)),\n"
                  "      \"l\"(map){6}, \"r\"(shared_address(b)){7}\n"
                  "      : \"memory\");\n}}\n",
                  rank, coordinates(rank, "int ", "i"), coordinates(window, "unsigned short ", "d"), operands(2, rank),
                  2 + rank, operands(3 + rank, window), inputs(rank, "r", "i"), inputs(window, "h", "d")),
      {"TensorMap", "shared_address"},
      true};
}

Helper store_box(int rank) {
  return {fmt::format("store_box_{}", rank),
          fmt::format("// A box of shared memory to a tensor; what lies outside of it is dropped.\n"
                      "__device__ __forceinline__ void store_box_{0}(const TensorMap* map, const void* from{1}) {{\n"
                      "  asm volatile(\"cp.async.bulk.tensor.{0}d.global.shared::cta.bulk_group [%0, {{{2}}}], "
                      "[%{3}];\" ::\"l\"(map){4}, \"r\"(shared_address(from))\n"
                      "               : \"memory\");\n}}\n",
                      rank, coordinates(rank, "int ", "i"), operands(1, rank), 1 + rank, inputs(rank, "r", "i")),
          {"TensorMap", "shared_address"},
          true};
}

std::vector<Helper> barrier_helpers() {
  return {
      {"TensorMap",
       R"(// A tensor that the copy engine knows, as the driver has encoded it.
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};
)",
       {},
       true},
      {"shared_address",
       R"(__device__ __forceinline__ unsigned int shared_address(const void* p) {
  return (unsigned int)__cvta_generic_to_shared(p);
}
)",
       {},
       true},
      {"barrier_init",
       R"(// A phase of `b` ends when so many threads have arrived, and all bytes that they expect.
__device__ __forceinline__ void barrier_init(unsigned long long* b, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(arrivals) : "memory");
}
)",
       {"shared_address"},
       true},
      {"barrier_init_visible",
       R"(// Barriers that this thread has made become visible to the copy engine.
__device__ __forceinline__ void barrier_init_visible() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
)",
       {},
       true},
      {"barrier_arrive",
       R"(__device__ __forceinline__ void barrier_arrive(unsigned long long* b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(b)) : "memory");
}
)",
       {"shared_address"},
       true},
      {"barrier_expect",
       R"(// An arrival, and `bytes` of copies that the phase waits for as well.
__device__ __forceinline__ void barrier_expect(unsigned long long* b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)), "r"(bytes) : "memory");
}
)",
       {"shared_address"},
       true},
      {"barrier_wait",
       R"(// Until the phase of that parity has ended; before a new barrier's first phase there was one of parity 1.
__device__ __forceinline__ void barrier_wait(unsigned long long* b, int parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(
          shared_address(b)),
      "r"(parity)
      : "memory");
}
)",
       {"shared_address"},
       true},
      {"store_commit",
       R"(// Ends a group of stored boxes.
__device__ __forceinline__ void store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
)",
       {},
       true},
      {"store_wait_read",
       R"(// Until at most kPending of this thread's groups of boxes still read shared memory.
template <int kPending>
__device__ __forceinline__ void store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
)",
       {},
       true},
      {"group_sync",
       R"(// A barrier of kThreads of the block's threads, those that name it.
template <int kThreads>
__device__ __forceinline__ void group_sync(int id) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(kThreads) : "memory");
}
)",
       {},
       true},
      {"registers_down",
       R"(// The group's threads give registers back, and keep so many each.
template <int kRegisters>
__device__ __forceinline__ void registers_down() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
)",
       {},
       true},
      {"registers_up",
       R"(// The group's threads wait for registers that others gave back, and have so many each.
template <int kRegisters>
__device__ __forceinline__ void registers_up() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
)",
       {},
       true},
  };
}

}  // namespace

std::vector<Helper> copy_engine_helpers() {
  std::vector<Helper> all = barrier_helpers();
  for (int rank : {2, 3, 4}) all.push_back(copy_box(rank));
  for (int rank : {3, 4, 5}) all.push_back(copy_pixels(rank));
  for (int rank : {2, 3}) all.push_back(store_box(rank));
  return all;
}

}  // namespace opfuse::cuda
