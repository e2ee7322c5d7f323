// Logical tensors into and out of program buffers, element by element through layout and strides.
#pragma once

#include "program/program.hpp"
#include "tensor/strided_access.hpp"

namespace opfuse {

/// A buffer at the sizes of a run.
class BufferAccess : public StridedAccess {
 public:
  BufferAccess(const Buffer& buffer, const SymbolValues& symbols);
};

}  // namespace opfuse
