// The least cost of one option per layer, within a bound on their sizes together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace opfuse {

struct SizedOption {
  size_t number = 0;  ///< of the caller
  double cost = 0;
  int64_t bytes = 0;
};

/// The number of the option taken for each layer. The first option of a layer is the one to take when nothing fits.
/// Sizes count in steps of a two-thousandth of `room`, rounded up, so the bound holds.
std::vector<size_t> choose_within(const std::vector<std::vector<SizedOption>>& layers, int64_t room);

}  // namespace opfuse
