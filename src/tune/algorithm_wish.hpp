// What --algorithm and --no-algorithm say: NAME[@NODE].
#pragma once

#include <string>
#include <vector>

#include "program/program.hpp"

namespace opfuse {

/// Of products of codes, beside those that convolutions have (cpu/algorithms.hpp): pair_codes.hpp.
inline constexpr const char* kPairsAlgorithm = "pairs";

struct AlgorithmWish {
  std::string name, node;  ///< node: empty for all
  bool used = false;       ///< it concerned a launch

  bool of_pairs() const { return name == kPairsAlgorithm; }
  /// Whether it says something of a launch, which is noted.
  bool concerns(const Launch& launch);
};

/// E::unknown_name of any other algorithm.
std::vector<AlgorithmWish> parse_wishes(const std::vector<std::string>& texts);

}  // namespace opfuse
