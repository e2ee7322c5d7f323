// Elements, or slices along an axis, that differ from each other: in ascending order, or in that of their first places.
// NaNs are one value, the last in ascending order.
#include <algorithm>
#include <numeric>

#include "routine/rows.hpp"

namespace opfuse {
namespace {

/// The order of slices: below 0, 0 or above 0.
class Slices {
 public:
  Slices(const Tensor& x, std::span<const int64_t> axis)
      : x_(x), sizes_(axis.empty() ? std::vector<int64_t>{x.elements()} : x.sizes(), axis.empty() ? 0 : axis[0]) {}
  int64_t count() const { return sizes_.along; }
  int compared(int64_t a, int64_t b) const {
    for (int64_t k = 0; k < sizes_.outer * sizes_.inner; ++k)
      if (const int order = is_float(x_.dtype()) ? reals(x_.real(at(a, k)), x_.real(at(b, k)))
                                                 : whole(x_.integer(at(a, k)), x_.integer(at(b, k))))
        return order;
    return 0;
  }

 private:
  const Tensor& x_;
  AxisSizes sizes_;
  int64_t at(int64_t slice, int64_t k) const {
    return (k / sizes_.inner * sizes_.along + slice) * sizes_.inner + k % sizes_.inner;
  }
  static int whole(int64_t a, int64_t b) { return a < b ? -1 : a > b; }
  static int reals(double a, double b) {
    const bool nan_a = a != a, nan_b = b != b;
    if (nan_a || nan_b) return nan_a == nan_b ? 0 : nan_a ? 1 : -1;
    return a < b ? -1 : a > b;
  }
};

}  // namespace

RoutineResult unique_routine(Settings settings, RoutineOperands operands) {
  const Tensor& x = *operands[0];
  const bool sorted = settings.empty() || settings[0] != 0;
  const Settings axis = settings.empty() ? settings : settings.subspan(1);
  const Slices slices(x, axis);
  std::vector<int64_t> order(static_cast<size_t>(slices.count()));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return slices.compared(a, b) < 0; });
  std::vector<std::vector<int64_t>> groups;  // of equal ones, by place
  for (const int64_t i : order) {
    if (groups.empty() || slices.compared(groups.back().front(), i) != 0) groups.emplace_back();
    groups.back().push_back(i);
  }
  if (!sorted) std::sort(groups.begin(), groups.end());
  std::vector<int64_t> first, counts, inverse(order.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    first.push_back(groups[g].front());
    counts.push_back(static_cast<int64_t>(groups[g].size()));
    for (const int64_t i : groups[g]) inverse[static_cast<size_t>(i)] = static_cast<int64_t>(g);
  }
  return {{picked(x, axis, first), Tensor::from_i64(first), Tensor::from_i64(inverse), Tensor::from_i64(counts)},
          {static_cast<int64_t>(first.size())}};
}

}  // namespace opfuse
