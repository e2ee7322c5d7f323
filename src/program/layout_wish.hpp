// How a kernel wants its operands to lie in memory.
#pragma once

#include <optional>
#include <vector>

#include "tensor/layout.hpp"

namespace opfuse {

struct LayoutWish {
  std::vector<std::optional<Layout>> params;  ///< by region parameter; nullopt: any layout is fine as given
  bool writes_padding = true;                 ///< results may have padding lanes: the kernel stores zeros there
  bool any = true;                            ///< there is a kernel whatever the layouts are
};

}  // namespace opfuse
