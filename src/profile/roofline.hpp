// Where a kernel stands between what arithmetic and what memory allow.
#pragma once

#include "profile/machine_limits.hpp"

namespace opfuse {

struct Roofline {
  double compute_seconds = 0;  ///< FLOP / rate of products of their type
  double memory_seconds = 0;   ///< bytes / read rate of the level that holds them
  double floor_seconds = 0;    ///< the larger of the two
  double share = 0;            ///< floor / measured time; 0 when nothing was measured
  bool memory_bound = false;
};

/// `bytes`: what the kernel must move, also its working set. `products`: the type of what it multiplies.
Roofline roofline(double flops, double bytes, double seconds, const MachineLimits& limits,
                  std::string_view products = "f32");

}  // namespace opfuse
