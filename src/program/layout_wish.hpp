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
  bool writes_padding = true;  ///< results may have padding lanes: the kernel stores zeros there
  bool any = true;             ///< there is a kernel whatever the layouts are
};

}  // namespace opfuse
