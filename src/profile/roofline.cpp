// time >= max(FLOP / rate of products, bytes / read rate of the level that holds the working set)
#include "profile/roofline.hpp"

#include <algorithm>

namespace opfuse {

Roofline roofline(double flops, double bytes, double seconds, const MachineLimits& limits, std::string_view products) {
  Roofline point;
  if (const double gops = limits.gops(products); gops > 0) point.compute_seconds = flops * 1e-9 / gops;
  const double rate = limits.read_gb_per_s(bytes);
  if (rate > 0) point.memory_seconds = bytes * 1e-9 / rate;
  point.floor_seconds = std::max(point.compute_seconds, point.memory_seconds);
  point.memory_bound = point.memory_seconds > point.compute_seconds;
  if (seconds > 0) point.share = point.floor_seconds / seconds;
  return point;
}

}  // namespace opfuse
