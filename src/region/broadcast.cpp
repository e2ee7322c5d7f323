// Index maps of broadcasts. `own` of an open dimension is 1 or equal to the axis (a run checks that), so the axis
// modulo `own` is right in both cases; most code assumes that they are equal, and a program of its own computes the
// rest.
#include "region/lowering.hpp"

namespace opfuse {

IndexExpr broadcast_index(const Dim& own, const Dim& whole, int axis, bool stretches) {
  if (own == Dim(1) && !(whole == Dim(1))) return {};
  const bool open = !own.is_constant() && !(own == whole);
  return {{IndexTerm{1, axis, 1, open && stretches ? own : Dim(0)}}, 0, {}};
}

IndexMap broadcast_map(const Shape& shape, const Shape& domain, bool stretches) {
  IndexMap map = IndexMap::broadcast(shape, domain);
  const size_t lead = domain.rank() - shape.rank();
  for (size_t i = 0; i < shape.rank(); ++i)
    map.dims[i] = broadcast_index(shape[i], domain[lead + i], static_cast<int>(lead + i), stretches);
  return map;
}

}  // namespace opfuse
