// The algorithms a convolution can be computed with, and what each costs on a target.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cpu/winograd/winograd.hpp"
#include "kernel/spec.hpp"

namespace opfuse {

/// "direct", "f2", "f4x2", "f4": in this order.
std::vector<std::string> algorithm_names();
std::optional<WinogradTile> winograd_tile(const std::string& algorithm);  ///< nullopt: direct, or no algorithm

struct AlgorithmOption {
  std::string name;
  std::optional<Layout> weights;  ///< instead of the layout they have; nullopt: direct
  Schedule schedule;
  double cycles = 0;  ///< predicted, weights read from memory
  int64_t weight_bytes = 0, scratch_bytes = 0;
};

/// The options of a launch, direct (as it is scheduled now) first; or why there is only that one.
struct AlgorithmOptions {
  std::vector<AlgorithmOption> options;
  int weights = -1;     ///< region parameter
  bool codes = false;   ///< sums of codes: all algorithms give the same bits
  std::string refused;  ///< why no other algorithm fits; empty when one does
};
AlgorithmOptions algorithm_options(const Region& region, const std::vector<ParamLayout>& layouts,
                                   const Schedule& direct, const TargetInfo& target, int64_t threads);

/// Cycles of any launch at its roof, for shares of a whole program.
double roof_cycles(const Region& region, const TargetInfo& target, int64_t threads);

bool is_convolution(const Region& region);

}  // namespace opfuse
