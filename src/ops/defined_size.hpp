// Sizes that data decide, in the attribute `defines` of operators whose results have them (ir/defined_symbols.hpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tensor/dim.hpp"

namespace opfuse {

/// The dimension that a run gives; nothing when it has no name.
inline std::optional<Dim> defined_size(const std::vector<std::string>& defines, size_t i) {
  if (i >= defines.size() || defines[i].empty()) return std::nullopt;
  return Dim::symbol(defines[i]);
}

}  // namespace opfuse
