// How a kernel wants its operands to lie in memory.
#pragma once

#include <optional>
#include <vector>

#include "tensor/layout.hpp"

namespace opfuse {

struct LayoutWish {
  std::vector<std::optional<Layout>> params;  ///< by region parameter; nullopt: any layout is fine as given
  /// The same where images lie in no larger blocks than a vector's; empty: no larger ones are wished.
  std::vector<std::optional<Layout>> narrow{};
  /// Times that an operand is read, which lying otherwise makes expensive; empty: once each.
  std::vector<int64_t> reads{};
  bool writes_padding = true;  ///< results may have padding lanes: the kernel stores zeros there
  bool any = true;             ///< there is a kernel whatever the layouts are

  int64_t reads_of(size_t param) const { return reads.empty() ? 1 : reads[param]; }
};

}  // namespace opfuse
