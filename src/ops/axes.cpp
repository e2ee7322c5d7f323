// Checks and normalises axis numbers.
#include "ops/axes.hpp"

#include <algorithm>

#include "base/fail.hpp"

namespace opfuse {

size_t normalize_axis(int64_t axis, size_t rank, std::string_view what) {
  const auto n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n) throw fail(E::bad_attribute, "{} is {}, but the rank is {}", what, axis, rank);
  return static_cast<size_t>(axis < 0 ? axis + n : axis);
}

std::vector<size_t> normalize_axes(const std::vector<int64_t>& axes, size_t rank, std::string_view what) {
  std::vector<size_t> out;
  for (int64_t axis : axes) out.push_back(normalize_axis(axis, rank, what));
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end())
    throw fail(E::bad_attribute, "{} names the same axis twice", what);
  return out;
}

}  // namespace opfuse
