// opfuse bench --kernels random: how near to the machine's limit generated kernels come on layers nobody tuned for.
#pragma once

#include <cstdint>

#include "compile_model.hpp"

namespace opfuse::cli {

struct KernelBench {
  uint64_t seed = 0;
  int count = 200;
  CompileFlags compile;
  bool alone = false;  ///< each layer a model of its own, with the caller's dense arrays
  bool json = false;
};

/// Prints the table (or JSON); the exit code.
int bench_random_kernels(const KernelBench& bench);

}  // namespace opfuse::cli
