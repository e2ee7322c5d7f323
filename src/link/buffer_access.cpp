// Sizes and strides of a buffer where its symbols are known.
#include "link/buffer_access.hpp"

namespace opfuse {

static std::vector<int64_t> strides_of(const Buffer& buffer, const SymbolValues& symbols) {
  std::vector<int64_t> strides;
  for (const Dim& stride : buffer.strides) strides.push_back(stride.evaluate(symbols));
  return strides;
}

BufferAccess::BufferAccess(const Buffer& buffer, const SymbolValues& symbols)
    : StridedAccess(buffer.layout, buffer.type.dtype, buffer.type.shape.evaluate(symbols),
                    strides_of(buffer, symbols)) {}

}  // namespace opfuse
