// Tensors for operator tests: given values, ramps and seeded random numbers, and comparison with a readable failure.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "ops/run_op.hpp"

namespace opfuse {

inline int64_t elements_of(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

inline Tensor f32(std::vector<int64_t> sizes, const std::vector<double>& values) {
  return Tensor::of(DType::f32, std::move(sizes), values);
}

inline Tensor f64(std::vector<int64_t> sizes, const std::vector<double>& values) {
  return Tensor::of(DType::f64, std::move(sizes), values);
}

inline Tensor i64(std::vector<int64_t> sizes, const std::vector<int64_t>& values) {
  Tensor t(DType::i64, std::move(sizes));
  for (size_t i = 0; i < values.size(); ++i) t.set_integer(static_cast<int64_t>(i), values[i]);
  return t;
}

/// first, first + 1, ...
inline Tensor ramp(std::vector<int64_t> sizes, double first = 0, DType dtype = DType::f64) {
  Tensor t(dtype, std::move(sizes));
  for (int64_t i = 0; i < t.elements(); ++i) t.set_real(i, first + static_cast<double>(i));
  return t;
}

inline Tensor random_tensor(std::vector<int64_t> sizes, unsigned seed) {
  std::mt19937 engine(seed);
  Tensor t(DType::f64, std::move(sizes));
  for (int64_t i = 0; i < t.elements(); ++i) t.set_real(i, static_cast<double>(engine()) / 2147483648.0 - 1.0);
  return t;
}

inline Tensor absent() { return {}; }

inline std::vector<double> values_of(const Tensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.elements(); ++i) v.push_back(t.real(i));
  return v;
}

inline void expect_values(const Tensor& got, const std::vector<int64_t>& sizes, const std::vector<double>& want,
                          double tolerance = 1e-12) {
  ASSERT_EQ(got.sizes(), sizes);
  ASSERT_EQ(static_cast<size_t>(got.elements()), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    const double g = got.real(static_cast<int64_t>(i));
    if (std::isnan(want[i]) ? std::isnan(g) : g == want[i]) continue;
    ASSERT_NEAR(g, want[i], tolerance * std::max(1.0, std::fabs(want[i]))) << "at element " << i;
  }
}

inline void expect_close(const Tensor& got, const Tensor& want, double tolerance = 1e-12) {
  expect_values(got, want.sizes(), values_of(want), tolerance);
}

/// Element types and shapes of inference, as text.
inline std::string inferred(std::string_view op, const AttrMap& attrs, const std::vector<std::string>& types,
                            const std::map<size_t, std::vector<Dim>>& dims = {}) {
  std::vector<TensorType> parsed;
  for (const std::string& t : types) parsed.push_back(t.empty() ? TensorType{} : parse_type(t));
  return infer_types(op, attrs, parsed, dims).text();
}

/// Name of the error that inference from types alone throws.
inline std::string inference_error(std::string_view op, const AttrMap& attrs, const std::vector<std::string>& types,
                                   const std::map<size_t, std::vector<Dim>>& dims = {}) {
  return error_of([&] { inferred(op, attrs, types, dims); });
}

/// Runs inference with all operands constant and the reference; their types must agree.
inline Tensor run_checked(std::string_view op, const AttrMap& attrs, const std::vector<Tensor>& inputs) {
  const std::vector<TensorType> types = infer_op(op, attrs, inputs);
  Tensor y = run_op(op, attrs, inputs);
  EXPECT_EQ(y.type().text(), types.at(0).text()) << op << ": inference and reference disagree";
  return y;
}

using Ints = std::vector<int64_t>;

}  // namespace opfuse
