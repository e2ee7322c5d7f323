// Indexed writes. Without a reduction elements are copied; with one they are combined in double (floats) or as
// integers, which wrap, in the order of the updates.
#include "ops/scatter.hpp"

#include <algorithm>
#include <cstring>

#include "base/fail.hpp"
#include "expr/domain.hpp"
#include "ops/checks.hpp"
#include "ops/indices.hpp"
#include "ops/strided_copy.hpp"
#include "tensor/dim_rule.hpp"
#include "tensor/number.hpp"

namespace opfuse {
namespace {

/// As kernels combine: NaN stays NaN, integers wrap.
ExprOp combiner(ScatterReduction reduction) {
  switch (reduction) {
    case ScatterReduction::mul:
      return ExprOp::mul;
    case ScatterReduction::max:
      return ExprOp::max;
    case ScatterReduction::min:
      return ExprOp::min;
    default:
      return ExprOp::add;
  }
}

/// The result under construction: floats with a reduction are held as f64 until the end.
class Target {
 public:
  Target(const Tensor& x, const Tensor& updates, ScatterReduction reduction)
      : reduction_(reduction), dtype_(x.dtype()), size_(byte_size(x.dtype())) {
    if (size_ == 0) throw fail(E::unsupported_dtype, "elements of type {} cannot be moved", name_of(dtype_));
    reals_ = reduction != ScatterReduction::none && is_float(dtype_);
    y_ = reals_ && dtype_ != DType::f64 ? x.cast(DType::f64) : x.clone();
    updates_ = reals_ ? updates.cast(DType::f64) : updates;
  }
  void write(int64_t to, int64_t from) {
    if (reduction_ == ScatterReduction::none)
      std::memcpy(static_cast<char*>(y_.mutable_data()) + static_cast<size_t>(to) * size_,
                  static_cast<const char*>(updates_.data()) + static_cast<size_t>(from) * size_, size_);
    else if (reals_)
      y_.set_real(to, combined({DType::f64, y_.real(to), 0}, {DType::f64, updates_.real(from), 0}).real);
    else
      set_wrapped(y_, to, combined({dtype_, 0, y_.integer(to)}, {dtype_, 0, updates_.integer(from)}).integer);
  }
  Tensor result() { return rounded(std::move(y_), dtype_); }

 private:
  ScalarValue combined(const ScalarValue& old, const ScalarValue& update) const {
    return evaluate_op(combiner(reduction_), old.dtype, {old, update}, Precision::exact);
  }

  ScatterReduction reduction_;
  DType dtype_;
  size_t size_;
  bool reals_ = false;
  Tensor y_, updates_;
};

OpSpec scatter_spec(const char* name, const char* doc) {
  return {.name = name,
          .inputs = {{"x"}, {"indices"}, {"updates"}},
          .outputs = {{"y"}},
          .kind = OpKind::injective,
          .flops_per_element = 0,
          .doc = doc};
}

}  // namespace

OpSpec ScatterElements::spec() {
  return scatter_spec("scatter_elements", "Writes one element per index along an axis.");
}

std::vector<TensorType> ScatterElements::infer(const Attrs& a, const Inference& in) {
  require_integer(in, 1);
  require_same_dtype(in, 0, 2);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  const size_t rank = in.shape(0).rank();
  const size_t axis = normalize_axis(a.axis, rank);
  in.require_rank(1, rank);
  in.require_rank(2, rank);
  for (size_t d = 0; d < rank; ++d) unify(in.shape(1)[d], in.shape(2)[d], "an axis of indices and updates");
  check_constant_indices(in, 1, {&in.shape(0)[axis], 1});
  for (size_t d = 0; d < rank; ++d) {
    const bool written = d == normalize_axis(a.axis, rank);
    assume(DimRule::at_least, in.shape(0)[d], written ? min(in.shape(1).elements(), Dim(1)) : in.shape(1)[d],
           fmt::format("indices lie inside axis {}", d));
    if (written) assume_inside(in, 1, in.shape(0)[d]);
  }
  return {{in.dtype(0), in.shape(0)}};
}

std::vector<Tensor> ScatterElements::reference(const Attrs& a, Tensors in, Precision) {
  const Tensor &x = *in[0], &indices = *in[1];
  const size_t axis = normalize_axis(a.axis, x.rank());
  const std::vector<int64_t> pitch = dense_strides(x.sizes());
  Target y(x, *in[2], a.reduction);
  for (int64_t i = 0; i < indices.elements(); ++i) {
    int64_t rest = i, to = 0;
    for (size_t d = x.rank(); d-- > 0; rest /= indices.dim(d)) {
      const int64_t at = d == axis ? indices.integer(i) : rest % indices.dim(d);
      to += checked_index(at, x.dim(d)) * pitch[d];
    }
    y.write(to, i);
  }
  return {y.result()};
}

OpSpec ScatterND::spec() { return scatter_spec("scatter_nd", "Writes slices at index tuples."); }

std::vector<TensorType> ScatterND::infer(const Attrs&, const Inference& in) {
  require_integer(in, 1);
  require_same_dtype(in, 0, 2);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  require_min_rank(in, 0, 1);
  require_min_rank(in, 1, 1);
  const Shape &x = in.shape(0), &indices = in.shape(1), &updates = in.shape(2);
  const int64_t tuple = indices.dims.back().value();
  if (tuple < 0 || tuple > static_cast<int64_t>(x.rank()))
    throw fail(E::shape_mismatch, "index tuples of {} do not fit {}", tuple, x.text());
  in.require_rank(2, indices.rank() - 1 + x.rank() - static_cast<size_t>(tuple));
  for (size_t d = 0; d + 1 < indices.rank(); ++d) unify(indices[d], updates[d], "an axis of indices and updates");
  for (size_t d = static_cast<size_t>(tuple); d < x.rank(); ++d)
    unify(x[d], updates[indices.rank() - 1 + d - static_cast<size_t>(tuple)], "an axis of the operand and updates");
  check_constant_indices(in, 1, {x.dims.data(), static_cast<size_t>(tuple)});
  for (size_t d = 0; d < static_cast<size_t>(tuple); ++d) {
    assume(DimRule::at_least, x[d], min(updates.elements(), Dim(1)), fmt::format("indices lie inside axis {}", d));
    assume_inside(in, 1, x[d], static_cast<int64_t>(d), tuple);
  }
  return {{in.dtype(0), x}};
}

std::vector<Tensor> ScatterND::reference(const Attrs& a, Tensors in, Precision) {
  const Tensor &x = *in[0], &indices = *in[1];
  const auto tuple = static_cast<size_t>(indices.sizes().back());
  const int64_t tuples = product(indices.sizes(), 0, indices.rank() - 1), run = product(x.sizes(), tuple, x.rank());
  Target y(x, *in[2], a.reduction);
  for (int64_t i = 0; i < tuples; ++i) {
    int64_t to = 0;
    for (size_t t = 0; t < tuple; ++t)
      to = to * x.dim(t) + checked_index(indices.integer(i * int64_t(tuple) + int64_t(t)), x.dim(t));
    for (int64_t j = 0; j < run; ++j) y.write(to * run + j, i * run + j);
  }
  return {y.result()};
}

}  // namespace opfuse
