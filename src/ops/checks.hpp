// What structured operators check about their operands, and small helpers of their inference and references.
#pragma once

#include <string_view>

#include "ops/axes.hpp"
#include "ops/declare.hpp"

namespace opfuse {

/// True when the rank of a present operand is unknown (results of opaque nodes); then results are unranked too.
bool has_unranked(const Inference& in);
/// One unranked result per requested output, of the given element type.
std::vector<TensorType> unranked(const Inference& in, DType dtype);

void require_float(const Inference& in, size_t i);                   ///< E::unsupported_dtype
void require_numeric(const Inference& in, size_t i);                 ///< E::unsupported_dtype for bool and string
void require_integer(const Inference& in, size_t i);                 ///< E::dtype_mismatch
void require_same_dtype(const Inference& in, size_t i, size_t j);    ///< E::dtype_mismatch; absent operands pass
void require_min_rank(const Inference& in, size_t i, size_t least);  ///< E::rank_mismatch
/// Vector operand of `length` elements; E::rank_mismatch, `code` for a differing length.
void require_vector(const Inference& in, size_t i, const Dim& length, std::string_view what);

/// False only when both are constants and differ: symbolic dimensions get the benefit of the doubt.
bool may_equal(const Dim& a, const Dim& b);
/// The constant one of two dimensions that must be equal; E::shape_mismatch naming `what`.
Dim unify(const Dim& a, const Dim& b, std::string_view what);

/// An index counted from the end when negative; E::bad_dimension when outside the axis.
int64_t checked_index(int64_t index, int64_t size);
/// Every element of operand `i`, where it is constant, is an index of an axis; E::bad_dimension names the first that is
/// not. Tuples: element j of a row belongs to axes[j % axes.size()].
void check_constant_indices(const Inference& in, size_t i, std::span<const Dim> axes);

/// Keeps the low bits, as integer arithmetic does; Tensor::set_integer saturates, and has no u64 beyond 2^63.
void set_wrapped(Tensor& y, int64_t i, int64_t value);

/// Product of sizes[from, to).
int64_t product(const std::vector<int64_t>& sizes, size_t from, size_t to);
Dim product(const Shape& shape, size_t from, size_t to);

/// Elements as doubles; shares storage when the tensor is f64 already.
class Reals {
 public:
  explicit Reals(const Tensor& t) : f64_(t.dtype() == DType::f64 ? t : t.cast(DType::f64)) {}
  const double* data() const { return static_cast<const double*>(f64_.data()); }
  double operator[](int64_t i) const { return data()[i]; }

 private:
  Tensor f64_;
};

inline double* reals(Tensor& f64) { return static_cast<double*>(f64.mutable_data()); }
/// Rounds a computed f64 tensor to the result's element type.
inline Tensor rounded(const Tensor& f64, DType dtype) { return dtype == DType::f64 ? f64 : f64.cast(dtype); }

/// Bytes of an operand known from its type (0 when absent).
Dim bytes_of(const TensorType& type);

}  // namespace opfuse
