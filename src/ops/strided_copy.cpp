// Strided gather into a dense tensor, a row at a time, by element size. Rows are distributed over threads in
// chunks of at least some 16 k elements.
#include "ops/strided_copy.hpp"

#include <algorithm>
#include <cstring>

#include "base/parallel.hpp"

namespace opfuse {
namespace {

template <class T>
void copy_rows(T* to, const T* from, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
               int64_t total) {
  const size_t rank = sizes.size();
  const int64_t inner = sizes[rank - 1], step = strides[rank - 1], rows = total / inner;
  const int64_t chunk = std::max<int64_t>(1, (1 << 14) / inner);
  parallel_for((rows + chunk - 1) / chunk, [&](int64_t part) {
    for (int64_t row = part * chunk; row < std::min(rows, (part + 1) * chunk); ++row) {
      const T* source = from;
      int64_t rest = row;
      for (size_t d = rank - 1; d-- > 0; rest /= sizes[d]) source += rest % sizes[d] * strides[d];
      T* target = to + row * inner;
      if (step == 1)
        std::copy_n(source, inner, target);
      else
        for (int64_t i = 0; i < inner; ++i) target[i] = source[i * step];
    }
  });
}

}  // namespace

std::vector<int64_t> dense_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

Tensor strided_copy(const Tensor& in, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                    int64_t offset) {
  Tensor out(in.dtype(), sizes);
  const int64_t total = out.elements();
  if (total == 0) return out;
  std::vector<int64_t> extent = sizes, step = strides;
  if (extent.empty()) {
    extent = {1};
    step = {0};
  }
  const size_t size = byte_size(in.dtype());
  const auto* from = static_cast<const uint8_t*>(in.data()) + offset * static_cast<int64_t>(size);
  with_element_type(in.dtype(), [&]<class T>(T) {
    copy_rows(static_cast<T*>(out.mutable_data()), reinterpret_cast<const T*>(from), extent, step, total);
  });
  return out;
}

}  // namespace opfuse
