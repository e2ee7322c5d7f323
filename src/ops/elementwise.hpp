// What follows from an elementwise operator's law: inference with broadcasting and the reference. The law
// arrives as three functions, one per value domain, made by declare<T>(); everything here is compiled once.
#pragma once

#include <span>
#include <vector>

#include "ops/declare.hpp"

namespace opfuse {

struct ElementwiseLaw {
  OpSpec spec;
  /// out[i] = law(in[k][i * step[k]] ...) for i < n; in[k] is null for an absent operand. Null when the law
  /// has no meaning on plain doubles.
  void (*row)(const void* attrs, double* out, std::span<const double* const> in, std::span<const int64_t> step,
              int64_t n) = nullptr;
  Scalar (*one)(const void* attrs, std::span<const Scalar* const> operands) = nullptr;
  Expr (*expr)(const void* attrs, std::span<const Expr> operands) = nullptr;
  DType (*to)(const void* attrs) = nullptr;  ///< the attribute `to`, for ResultDType::attribute_to
};

/// Broadcast shape, and the dtype the law itself gives (so its operand checks run here).
std::vector<TensorType> infer_elementwise(const ElementwiseLaw& law, const void* attrs, const Inference& in);

/// Reals (and booleans) on doubles, a row at a time on several threads; all else element by element on
/// typed Scalars. The result has the law's dtype, or f64 for floats in exact precision.
std::vector<Tensor> run_elementwise(const ElementwiseLaw& law, const void* attrs, Tensors inputs, Precision precision);

/// The law on integers that follow from shapes, for small results. Nothing when an operand's are not known.
std::optional<std::vector<Dim>> elementwise_dims(const ElementwiseLaw& law, const void* attrs, const Inference& in);

/// The operator's default cost: flops_per_element for each result element.
Cost elementwise_cost(int flops_per_element, std::span<const TensorType> out);

}  // namespace opfuse
