// Operators with structure: contractions, windows, reductions, movement of elements.
#include "ops/declare_impl.hpp"
#include "ops/lists.hpp"

namespace opfuse {

void register_structured(OpRegistry&) {}

}  // namespace opfuse
