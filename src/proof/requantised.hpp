// The class "requantised" (docs/accuracy.md): an exact sum of codes, and a defined rounding of what follows. Kernel and
// law have the same bits.
#pragma once

#include <optional>
#include <vector>

#include "region/region.hpp"

namespace opfuse {

/// A sum of codes behind which every operation has one result: + - * min max, rounding, comparison. Functions (erf,
/// division) are held to their bounds instead.
bool is_requantised(const Region& region);

/// Elements of `results` (in the order of the region's results) that have other bits than the law's; `operands` by
/// parameter, as the kernel had them.
int64_t off_the_law(const Region& region, const std::vector<Tensor>& operands, const std::vector<Tensor>& results,
                    const SymbolValues& symbols);

}  // namespace opfuse
