// Inputs that break careless rewrites: random ones with one huge, tiny, infinite or undefined element.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"

namespace opfuse::testing {

/// Random inputs, then the same with a corner value in the middle of every floating-point one.
inline std::vector<std::vector<Tensor>> corner_inputs(const Graph& graph) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<std::vector<Tensor>> sets{random_inputs(graph)};
  for (const double corner : {1e30, -1e30, 1e-38, 0.0, kInfinity, -kInfinity, std::nan("")}) {
    sets.push_back(random_inputs(graph));
    for (Tensor& t : sets.back())
      if (is_float(t.dtype())) t.set_real(t.elements() / 2, corner);
  }
  return sets;
}

/// Finite numbers agree to 1e-6 of themselves, infinities in sign, NaN with NaN.
inline void expect_same_numbers(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.elements(), want.elements());
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double g = got.real(i), w = want.real(i);
    if (std::isfinite(w))
      ASSERT_NEAR(g, w, 1e-6 * std::max(1.0, std::fabs(w))) << i;
    else
      ASSERT_TRUE(std::isnan(w) ? std::isnan(g) : g == w) << i << ": " << g << " for " << w;
  }
}

/// Both graphs on corner_inputs().
inline void expect_same_on_corners(const Graph& before, const Graph& after) {
  for (const std::vector<Tensor>& inputs : corner_inputs(before)) {
    const std::vector<Tensor> want = interpret(before, inputs), got = interpret(after, inputs);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) expect_same_numbers(got[i], want[i]);
  }
}

}  // namespace opfuse::testing
