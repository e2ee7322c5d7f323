// Values as launches of the host's own functions have them: with their layout and strides, at the sizes of a run.
#pragma once

#include "runtime/artifact.hpp"
#include "tensor/strided_access.hpp"

namespace opfuse {

/// Row-major without holes, at these sizes.
inline bool is_plain(const PlacedValue& value, const SymbolValues& symbols) {
  if (!value.layout.is_dense() || value.strides.size() != value.type.shape.rank()) return value.strides.empty();
  int64_t step = 1;
  for (size_t i = value.strides.size(); i-- > 0;) {
    const int64_t extent = value.type.shape[i].evaluate(symbols);
    if (extent != 1 && value.strides[i].evaluate(symbols) != step) return false;
    step *= extent;
  }
  return true;
}

inline StridedAccess access_of(const PlacedValue& value, const SymbolValues& symbols) {
  std::vector<int64_t> strides;
  for (const Dim& stride : value.strides) strides.push_back(stride.evaluate(symbols));
  return {value.layout, value.type.dtype, value.type.shape.evaluate(symbols), std::move(strides)};
}

}  // namespace opfuse
