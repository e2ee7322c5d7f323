#include "cpu/schedule_parts.hpp"

#include <algorithm>
#include <cmath>

#include "base/integers.hpp"

namespace opfuse {

int64_t work_of(const Stage& stage) {
  int64_t work = 1;
  for (const Dim& d : stage.domain) work *= d.constant().value_or(1);
  for (const Dim& d : stage.reduce) work *= d.constant().value_or(1);
  return work;
}

namespace {

constexpr int64_t kMostParts = 16;  // of a launch for a few workers
constexpr int64_t kMostRounds = 2;  // parts of a worker, so that one that is late leaves some to others

/// Time over that of `parts` equal ones, and what too few or an odd number of them cost; for many threads, over that of
/// as many as are wanted, in rounds.
double parts_cost(double largest, double even, int64_t parts, int64_t wanted, const TargetInfo& target) {
  const int64_t threads = target.launch.threads;
  double cost = largest / even;
  if (threads > kFewThreads) {
    const double all = even * static_cast<double>(parts), rounds = static_cast<double>(ceil_of(parts, threads));
    return rounds * largest * static_cast<double>(std::min(wanted, threads)) / all +
           target.parts.each * static_cast<double>(parts);
  }
  if (parts < wanted) cost += target.parts.missing * static_cast<double>(wanted - parts) / static_cast<double>(wanted);
  return parts % 2 && parts > 1 ? cost + target.parts.odd : cost;
}

}  // namespace

void split_parts(Parts& s, int64_t wanted, int64_t blocks, int64_t rows, double weight_bytes, double data_bytes,
                 const TargetInfo& target) {
  const int64_t threads = target.launch.threads, most = std::max<int64_t>(64, 2 * threads);
  int64_t best_o = 1, best_p = 1;
  double least = INFINITY;
  for (int64_t o = 1; o <= std::min(blocks, most); ++o)
    for (int64_t p = 1; p <= std::min(rows, most); ++p) {
      const int64_t parts = o * p;
      if (parts > 2 * wanted) break;
      const double piece = std::ceil(static_cast<double>(blocks) / static_cast<double>(o)) *
                           std::ceil(static_cast<double>(rows) / static_cast<double>(p));
      double cost =
          parts_cost(piece, static_cast<double>(blocks * rows) / static_cast<double>(parts), parts, wanted, target);
      cost += 0.1 * (weight_bytes * static_cast<double>(p) + data_bytes * static_cast<double>(o)) /
              (weight_bytes + data_bytes) / 8;
      if (cost < least) least = cost, best_o = o, best_p = p;
    }
  s.parts_o = best_o;
  s.parts_p = best_p;
}

void split_blocks(Parts& s, int64_t wanted, int64_t blocks, int64_t rows, const TargetInfo& target) {
  int64_t best = 1;
  double least = INFINITY;
  for (int64_t o = 1; o <= blocks && o * rows <= std::max(2 * wanted, rows); ++o) {
    const double even = static_cast<double>(blocks) / static_cast<double>(o);
    const double cost = parts_cost(std::ceil(even), even, o * rows, wanted, target);
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
  const bool many = launch.threads > kFewThreads;
  const double seconds = launch.part_seconds * (many ? target.parts.grain_of_many : 1);
  const double compute = macs / (seconds * launch.multiply_adds_per_second * static_cast<double>(target.lanes_f32()));
  const double memory = bytes / (seconds * launch.bytes_per_second);
  const double parts = std::max(compute, memory);
  const auto count = static_cast<int64_t>(parts);
  if (many && count >= launch.threads) return launch.threads * std::min<int64_t>(count / launch.threads, kMostRounds);
  return std::clamp<int64_t>(count, parts > 0.3 ? 2 : 1, many ? launch.threads : kMostParts);
}

}  // namespace opfuse
