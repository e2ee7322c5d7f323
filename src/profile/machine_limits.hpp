// What no program can exceed on this machine: multiply-add rate from registers, read rates of the caches and of memory.
// Measured, never assumed; every report that quotes a share measures them in the same run.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "profile/product_rates.hpp"

namespace opfuse {

/// Read rate while all threads together go over `bytes` again and again.
struct ReadRate {
  int64_t bytes = 0;
  double gb_per_s = 0;
};

struct MachineLimits {
  int threads = 1;
  int vector_bytes = 0;               ///< of the multiply-adds: 64, 32 or 16
  double fma_gflops = 0;              ///< fp32, a multiply-add counts two
  std::vector<ProductRate> products;  ///< of other types than f32, where they were measured
  std::vector<ReadRate> reads;        ///< ascending working sets, the last is memory; may be empty
  /// Rate for a working set of that size: the first level that holds it, else memory. 0 when nothing was measured.
  double read_gb_per_s(double bytes) const;
  const ProductRate* rate_of(std::string_view type) const;  ///< null: none was measured
  /// Rate of products of "int8", "bf16" ...; that of f32 where none was measured.
  double gops(std::string_view type) const;
};

/// fp32 multiply-adds in registers, all threads together, best of several rounds that take about `seconds` in all.
/// `vector_bytes` 0: the widest this machine has. Without FMA the rate is that of a multiply and an add.
double measure_fma_gflops(int threads, int vector_bytes = 0, double seconds = 0.1);

/// Cycles per second of one core at work: additions that wait for each other.
double measure_clock_hz(double seconds = 0.05);

/// Read rate of `threads` threads that share out `bytes`.
double measure_read_gb_per_s(int threads, int64_t bytes, double seconds = 0.05);

/// The FMA rate; with `memory`, also the read rates at a quarter of a core's L2 up to main memory (0.3 s more).
MachineLimits measure_limits(int threads, int vector_bytes = 0, bool memory = true);

/// Widest vectors of this machine: 64, 32 or 16.
int widest_vector_bytes();

}  // namespace opfuse
