#include "onnx/known_shape.hpp"

#include "base/fail.hpp"
#include "ir/located.hpp"

namespace opfuse::onnx {

size_t rank_of(const Value* x, const char* what) {
  if (!x->type.shape.ranked) throw fail(E::unsupported_op, "the rank of {} is not known", what);
  return x->type.shape.rank();
}

int64_t known_size(const Value* x, size_t axis) {
  const Shape& shape = x->type.shape;
  const auto size = shape.ranked && axis < shape.rank() ? shape[axis].constant() : std::nullopt;
  if (!size) throw fail(E::unsupported_op, "dimension {} of {} is open", axis, x->type.text()).hint(kGiveSizes);
  return *size;
}

}  // namespace opfuse::onnx
