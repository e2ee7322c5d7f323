// The CUDA driver as a table of functions: NVIDIA's library, opened at run time with prototypes of our own, or the fake
// driver, which keeps memory on the host and runs emulated kernels. Everything above uses the table alone.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace opfuse::cuda {

using CuResult = int;
using CuDevice = int;
using CuPointer = unsigned long long;
using CuContext = struct CuContextHandle*;
using CuModule = struct CuModuleHandle*;
using CuFunction = struct CuFunctionHandle*;
using CuStream = struct CuStreamHandle*;
using CuGraph = struct CuGraphHandle*;
using CuGraphExec = struct CuGraphExecHandle*;
using CuEvent = struct CuEventHandle*;
/// A tensor that the copy engine knows, opaque; an argument of kernels.
struct alignas(64) CuTensorMap {
  unsigned long long opaque[16];
};

/// How a kernel is launched: CUlaunchConfig and CUlaunchAttribute, as the driver reads them.
struct CuLaunchAttribute {
  int id = 0;
  char pad[4] = {};
  union {
    unsigned cluster[3];  ///< blocks
    int programmatic;     ///< it may begin before the launch in front of it has ended
    char bytes[64] = {};
  } value;
};
struct CuLaunch {
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  CuStream stream = nullptr;
  CuLaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};
inline constexpr int kClusterAttribute = 4, kProgrammaticAttribute = 6;

/// Attributes of a pointer: in whose memory it lies (the driver knows no other), and the allocation around it.
inline constexpr int kPointerMemory = 2, kPointerManaged = 8, kPointerDevice = 9, kPointerStart = 11,
                     kPointerBytes = 12;
inline constexpr unsigned kHostMemoryType = 1;

/// Attribute of a function: the most shared memory that a launch may give it. Launches that give more than
/// kPlainShared need it set.
inline constexpr int kMostLaunchShared = 8;
inline constexpr size_t kPlainShared = 48 << 10;

struct Driver {
#define OPFUSE_CUDA(name, arguments) CuResult(*name) arguments = nullptr;
#include "device/driver_functions.def"
#undef OPFUSE_CUDA
  std::string path;  ///< of the library
  /// "out of memory (CUDA_ERROR_OUT_OF_MEMORY)"
  std::string words(CuResult result) const;
  /// Throws E::device_failed with the driver's words when `result` is an error.
  void check(CuResult result, std::string_view doing) const;
};

/// NVIDIA's driver, opened once; throws E::no_device: "cuda: no driver found (searched ...)".
const Driver& real_driver();
const Driver& fake_driver();
/// What was taken from the fake driver and not given back: handles, allocations, holds on its context.
size_t fake_driver_live();
/// The one that a target's executables run on.
const Driver& driver_for(std::string_view target);
/// One line for reports: the driver's version and its devices, or why there is none.
std::string driver_state();

}  // namespace opfuse::cuda
