// Shapes: lists of dimensions.
#include "base/fail.hpp"
#include "tensor/dim.hpp"

namespace opfuse {

Shape Shape::of(const std::vector<int64_t>& sizes) { return Shape(std::vector<Dim>(sizes.begin(), sizes.end())); }

Shape Shape::unknown() {
  Shape s;
  s.ranked = false;
  return s;
}

bool Shape::is_static() const {
  if (!ranked) return false;
  for (const Dim& d : dims) {
    if (!d.is_constant()) return false;
  }
  return true;
}

Dim Shape::elements() const {
  if (!ranked) throw fail(E::unknown_dimension, "the number of dimensions must be known here");
  Dim product = 1;
  for (const Dim& d : dims) product = product * d;
  return product;
}

std::vector<int64_t> Shape::sizes() const {
  if (!ranked) throw fail(E::unknown_dimension, "the number of dimensions must be known here");
  std::vector<int64_t> out;
  for (const Dim& d : dims) out.push_back(d.value());
  return out;
}

std::vector<int64_t> Shape::evaluate(const SymbolValues& symbols) const {
  if (!ranked) throw fail(E::unknown_dimension, "the number of dimensions must be known here");
  std::vector<int64_t> out;
  for (const Dim& d : dims) out.push_back(d.evaluate(symbols));
  return out;
}

}  // namespace opfuse
