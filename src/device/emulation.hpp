// Kernels on the CPU: blocks run one after the other, each thread of a block as a fiber with a stack of its own.
// Threads are switched at barriers and warp exchanges only, in an order drawn anew each time, so that what one thread
// reads before another has written it is stale or poisoned in some run; asynchronous copies land by lot. Two accesses
// of shared memory that no barrier orders are an error in any order (shared_races.hpp). The kernels are ordinary
// machine code made from the very text that NVRTC compiles, with cuda/emulation.h in front.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace opfuse::cuda {

/// What a kernel's code sees of its thread and asks of its block. Layout shared with cuda/emulation.h.
struct EmulatedThread {
  unsigned thread = 0, block = 0, block_size = 0, grid_size = 0;
  unsigned long long epoch = 0;  ///< another one for every block that runs
  unsigned long long lot = 0;    ///< decides when asynchronous copies of the block land
  unsigned char* launch_shared = nullptr;
  size_t launch_shared_bytes = 0;
  void (*barrier)() = nullptr;        ///< all threads of the block
  void (*warp_barrier)() = nullptr;   ///< the 32 threads of a warp
  void (*exchange)() = nullptr;       ///< those too, but memory is not ordered
  char* (*slot)(int lane) = nullptr;  ///< 1 KiB per lane of the caller's warp, for exchanges
  void (*fault)() = nullptr;          ///< an access that a device would refuse; does not return
  /// Shared memory is read (0), written (1), copied to from now on (2), or was until now (3), read by a product (4);
  /// this thread fences (5). May not return.
  void (*touched)(const void* at, unsigned bytes, int how) = nullptr;

  // The copy engine and barriers of phases (sm_90a).
  void (*make_barrier)(const void* barrier, int arrivals) = nullptr;
  void (*barriers_are_visible)() = nullptr;
  void (*arrive)(const void* barrier, long long bytes) = nullptr;
  void (*wait_phase)(const void* barrier, int parity) = nullptr;
  /// `window` is null for boxes.
  void (*load_box)(void* to, const void* map, const int* at, int rank, const unsigned short* window,
                   const void* barrier) = nullptr;
  void (*store_box)(const void* map, const int* at, int rank, const void* from) = nullptr;
  void (*store_commit)() = nullptr;
  void (*store_wait)(int pending) = nullptr;
  void (*named_barrier)(int id, int threads) = nullptr;  ///< `threads` of the block, those that name it
  void (*wait_for_earlier)() = nullptr;                  ///< the launches in front of a programmatic one
};

/// How a kernel is launched.
struct EmulatedLaunch {
  unsigned grid = 1, block = 1;
  size_t shared = 0;     ///< bytes of shared memory beside the kernel's own arrays
  unsigned cluster = 1;  ///< blocks
};

struct EmulationError {
  std::string message;
};

/// A library of emulated kernels, loaded from bytes.
class EmulatedModule {
 public:
  explicit EmulatedModule(std::span<const uint8_t> image);
  ~EmulatedModule();
  EmulatedModule(const EmulatedModule&) = delete;
  EmulatedModule& operator=(const EmulatedModule&) = delete;
  using Kernel = void (*)(void** arguments);
  Kernel find(const std::string& name) const;                    ///< null when absent
  std::vector<size_t> arguments(const std::string& name) const;  ///< bytes of each that it takes
  /// Runs all blocks; throws EmulationError when threads wait for each other in vain. Host threads take turns: shared
  /// memory and the threads' view are statics of the library. `earlier`: what a programmatic launch waits for, run when
  /// its first thread does, or at its end.
  void launch(Kernel kernel, const EmulatedLaunch& shape, void** arguments, uint64_t seed,
              const std::function<void()>& earlier = {}) const;

 private:
  void load(std::span<const uint8_t> image);
  void unload();
  int fd_ = -1;  ///< open as long as the library: the linker knows it by the descriptor's path
  void* library_ = nullptr;
  mutable std::recursive_mutex running_;
  char* shared_begin_ = nullptr;
  char* shared_end_ = nullptr;
};

}  // namespace opfuse::cuda
