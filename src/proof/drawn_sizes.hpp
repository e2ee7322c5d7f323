// Sizes of open dimensions at which the kernels for all sizes are proven: all of 1, odd ones, any.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tensor/dim.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {

struct DrawnSizes {
  std::vector<SymbolValues> sizes;      ///< three, fewer where no legal ones were found
  std::vector<std::string> rejected{};  ///< "H=1 W=1: why", the first of each round
};

/// Why sizes are illegal; empty when they are not.
using SizeCheck = std::function<std::string(const SymbolValues&)>;

/// Values of `open`, on top of `known`, that `check` has nothing against. Illegal draws are drawn again, larger. A
/// dimension that `constraints` make equal to others has their value: few draws would meet "C = 24".
DrawnSizes draw_sizes(const std::set<std::string>& open, const SymbolValues& known, uint64_t seed,
                      const SizeCheck& check, const std::vector<DimConstraint>& constraints = {});

}  // namespace opfuse
