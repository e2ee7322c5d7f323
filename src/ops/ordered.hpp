// Reading a tensor's elements for comparison: 64-bit integers exactly, floats as doubles with NaN above everything.
#pragma once

#include <cmath>

#include "ops/checks.hpp"

namespace opfuse {

inline bool precedes(int64_t a, int64_t b) { return a < b; }
inline bool precedes(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

/// Calls f(std::vector<double>) or f(std::vector<int64_t>) with the elements.
template <class F>
void with_ordered(const Tensor& t, F&& f) {
  if (is_float(t.dtype())) {
    const Reals r(t);
    f(std::vector<double>(r.data(), r.data() + t.elements()));
  } else {
    std::vector<int64_t> v(static_cast<size_t>(t.elements()));
    for (int64_t i = 0; i < t.elements(); ++i) v[static_cast<size_t>(i)] = t.integer(i);
    f(v);
  }
}

}  // namespace opfuse
