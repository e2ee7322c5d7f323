#include "cpu/schedule_parts.hpp"

#include <algorithm>
#include <cmath>

namespace opfuse {

int64_t work_of(const Stage& stage) {
  int64_t work = 1;
  for (const Dim& d : stage.domain) work *= d.constant().value_or(1);
  for (const Dim& d : stage.reduce) work *= d.constant().value_or(1);
  return work;
}

namespace {

constexpr double kMissingParts = 2.0;  // of the time, when there is but one part of many that are wanted
constexpr double kOddParts = 0.2;      // two workers: one has a part more

/// Time over that of `parts` equal ones, and what too few or an odd number of them cost.
double parts_cost(double largest, double even, int64_t parts, int64_t wanted) {
  double cost = largest / even;
  if (parts < wanted) cost += kMissingParts * static_cast<double>(wanted - parts) / static_cast<double>(wanted);
  return parts % 2 && parts > 1 ? cost + kOddParts : cost;
}

}  // namespace

void split_parts(Parts& s, int64_t wanted, int64_t blocks, int64_t rows, double weight_bytes, double data_bytes) {
  int64_t best_o = 1, best_p = 1;
  double least = INFINITY;
  for (int64_t o = 1; o <= std::min<int64_t>(blocks, 64); ++o)
    for (int64_t p = 1; p <= std::min<int64_t>(rows, 64); ++p) {
      const int64_t parts = o * p;
      if (parts > 2 * wanted) break;
      const double piece = std::ceil(static_cast<double>(blocks) / static_cast<double>(o)) *
                           std::ceil(static_cast<double>(rows) / static_cast<double>(p));
      double cost = parts_cost(piece, static_cast<double>(blocks * rows) / static_cast<double>(parts), parts, wanted);
      cost += 0.1 * (weight_bytes * static_cast<double>(p) + data_bytes * static_cast<double>(o)) /
              (weight_bytes + data_bytes) / 8;
      if (cost < least) least = cost, best_o = o, best_p = p;
    }
  s.parts_o = best_o;
  s.parts_p = best_p;
}

void split_blocks(Parts& s, int64_t wanted, int64_t blocks, int64_t rows) {
  int64_t best = 1;
  double least = INFINITY;
  for (int64_t o = 1; o <= blocks && o * rows <= std::max(2 * wanted, rows); ++o) {
    const double even = static_cast<double>(blocks) / static_cast<double>(o);
    const double cost = parts_cost(std::ceil(even), even, o * rows, wanted);
    if (cost < least) least = cost, best = o;
  }
  s.parts_o = best;
  s.parts_p = rows;
}

void rows_first(Parts& s) {
  if (s.parts_o > 1 && s.parts_p > 1) s.rows_first = 1;
}

int64_t wanted_parts(double macs, const TargetInfo& target, double bytes) {
  const LaunchCosts& launch = target.launch;
  const double compute =
      macs / (launch.part_seconds * launch.multiply_adds_per_second * static_cast<double>(target.lanes_f32()));
  const double memory = bytes / (launch.part_seconds * launch.bytes_per_second);
  const double parts = std::max(compute, memory);
  return std::clamp<int64_t>(static_cast<int64_t>(parts), parts > 0.3 ? 2 : 1, 16);
}

}  // namespace opfuse
