// Element copies driven by one table per axis; the innermost axis is the loop, the others an odometer.
#include "ops/table_copy.hpp"

#include <cstring>
#include <numeric>

#include "ops/strided_copy.hpp"

namespace opfuse {
namespace {

template <class T>
void copy_rows(T* to, const T* from, const std::vector<std::vector<int64_t>>& table, const std::vector<int64_t>& pitch,
               T fill) {
  const size_t rank = table.size(), last = rank - 1;
  std::vector<size_t> at(rank, 0);
  for (bool more = true; more;) {
    int64_t base = 0;
    bool inside = true;
    for (size_t d = 0; d < last; ++d) {
      inside &= table[d][at[d]] >= 0;
      base += table[d][at[d]] * pitch[d];
    }
    for (int64_t i : table[last]) *to++ = inside && i >= 0 ? from[base + i] : fill;
    more = false;
    for (size_t d = last; d-- > 0 && !more;) {
      more = ++at[d] < table[d].size();
      if (!more) at[d] = 0;
    }
  }
}

}  // namespace

std::vector<int64_t> identity_table(int64_t size) {
  std::vector<int64_t> table(static_cast<size_t>(size));
  std::iota(table.begin(), table.end(), int64_t{0});
  return table;
}

Tensor table_copy(const Tensor& x, const std::vector<std::vector<int64_t>>& table, const Tensor* fill) {
  if (table.empty()) return x;
  std::vector<int64_t> sizes;
  for (const auto& t : table) sizes.push_back(static_cast<int64_t>(t.size()));
  Tensor y(x.dtype(), sizes);
  if (y.elements() == 0) return y;
  const std::vector<int64_t> pitch = dense_strides(x.sizes());
  with_element_type(x.dtype(), [&]<class T>(T value) {
    if (fill) std::memcpy(&value, fill->data(), sizeof(T));
    copy_rows(static_cast<T*>(y.mutable_data()), static_cast<const T*>(x.data()), table, pitch, value);
  });
  return y;
}

}  // namespace opfuse
