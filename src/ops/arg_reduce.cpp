// Positions of extrema along an axis.
#include "ops/arg_reduce.hpp"

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "ops/ordered.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {
namespace {

std::vector<TensorType> infer_arg(int64_t attr_axis, bool keepdims, const Inference& in) {
  require_numeric(in, 0);
  if (has_unranked(in)) return unranked(in, DType::i64);
  Shape y = in.shape(0);
  const size_t axis = normalize_axis(attr_axis, y.rank());
  if (y[axis] == Dim(0)) throw fail(E::bad_dimension, "axis {} is empty: it has no extreme element", axis);
  assume(DimRule::at_least, y[axis], 1, fmt::format("axis {} has an extreme element", axis));
  if (keepdims)
    y[axis] = 1;
  else
    y.dims.erase(y.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  return {{DType::i64, y}};
}

std::vector<Tensor> arg_reduce(const ArgReduceAttrs& a, const Tensor& x, bool largest) {
  const size_t axis = normalize_axis(a.axis, x.rank());
  std::vector<int64_t> sizes = x.sizes();
  const int64_t n = sizes[axis], outer = product(sizes, 0, axis), inner = product(sizes, axis + 1, sizes.size());
  if (a.keepdims)
    sizes[axis] = 1;
  else
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(axis));
  Tensor y(DType::i64, sizes);
  with_ordered(x, [&](const auto& values) {
    auto* out = static_cast<int64_t*>(y.mutable_data());
    for (int64_t r = 0; r < outer * inner; ++r) {
      const auto at = [&](int64_t i) { return values[static_cast<size_t>((r / inner * n + i) * inner + r % inner)]; };
      int64_t best = 0;
      for (int64_t i = 1; i < n; ++i) {
        const bool better = largest ? precedes(at(best), at(i)) : precedes(at(i), at(best));
        const bool tie = !precedes(at(best), at(i)) && !precedes(at(i), at(best));
        if (better || (tie && a.select_last_index)) best = i;
      }
      out[r] = best;
    }
  });
  return {y};
}

OpSpec arg_spec(const char* name, const char* doc) {
  return {.name = name, .inputs = {{"x"}}, .outputs = {{"y"}}, .kind = OpKind::reduction, .doc = doc};
}

}  // namespace

OpSpec ArgMax::spec() { return arg_spec("arg_max", "Position of the largest element along an axis."); }
std::vector<TensorType> ArgMax::infer(const Attrs& a, const Inference& in) { return infer_arg(a.axis, a.keepdims, in); }
std::vector<Tensor> ArgMax::reference(const Attrs& a, Tensors in, Precision) { return arg_reduce(a, *in[0], true); }

OpSpec ArgMin::spec() { return arg_spec("arg_min", "Position of the smallest element along an axis."); }
std::vector<TensorType> ArgMin::infer(const Attrs& a, const Inference& in) { return infer_arg(a.axis, a.keepdims, in); }
std::vector<Tensor> ArgMin::reference(const Attrs& a, Tensors in, Precision) { return arg_reduce(a, *in[0], false); }

}  // namespace opfuse
