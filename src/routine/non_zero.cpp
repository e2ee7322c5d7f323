// Coordinates of the elements that are not zero, in row-major order, one row for each dimension.
#include "routine/rows.hpp"

namespace opfuse {
namespace {

template <class T, class IsZero>
void collect(const Tensor& x, const IsZero& is_zero, std::vector<int64_t>& found) {
  const std::span<const T> values = x.view<T>();
  for (size_t i = 0; i < values.size(); ++i)
    if (!is_zero(values[i])) found.push_back(static_cast<int64_t>(i));
}

std::vector<int64_t> positions(const Tensor& x) {
  std::vector<int64_t> found;
  const auto zero = [](auto v) { return v == 0; };
  if (x.dtype() == DType::f32) {
    collect<float>(x, zero, found);
  } else if (byte_size(x.dtype()) == 1 && !is_float(x.dtype())) {
    collect<uint8_t>(x, zero, found);
  } else if (x.dtype() == DType::i64) {
    collect<int64_t>(x, zero, found);
  } else {
    const bool real = is_float(x.dtype());
    for (int64_t i = 0, n = x.elements(); i < n; ++i)
      if (real ? x.real(i) != 0 : x.integer(i) != 0) found.push_back(i);
  }
  return found;
}

}  // namespace

RoutineResult non_zero_routine(Settings, RoutineOperands operands) {
  const Tensor& x = *operands[0];
  const std::vector<int64_t> found = positions(x);
  const auto count = static_cast<int64_t>(found.size()), rank = static_cast<int64_t>(x.rank());
  Tensor y(DType::i64, {rank, count});
  const std::span<int64_t> out = y.mutable_view<int64_t>();
  int64_t stride = 1;
  for (int64_t d = rank; d-- > 0;) {
    const int64_t extent = x.dim(static_cast<size_t>(d));
    int64_t* row = out.data() + d * count;
    for (int64_t i = 0; i < count; ++i) row[i] = found[static_cast<size_t>(i)] / stride % extent;
    stride *= extent;
  }
  return {{std::move(y)}, {count}};
}

}  // namespace opfuse
