// Running sums and products along an axis, in double or (wrapping) 64-bit integers.
#include "ops/cum_sum.hpp"

#include "base/fail.hpp"
#include "ops/checks.hpp"

namespace opfuse {

template <bool kProduct>
OpSpec Cumulative<kProduct>::spec() {
  return {.name = kProduct ? "cum_prod" : "cum_sum",
          .inputs = {{"x"}, {"axis"}},
          .outputs = {{"y"}},
          .kind = OpKind::reduction,
          .doc = kProduct ? "Running product along an axis." : "Running sum along an axis."};
}

template <bool kProduct>
std::vector<TensorType> Cumulative<kProduct>::infer(const Attrs&, const Inference& in) {
  require_numeric(in, 0);
  require_integer(in, 1);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  if (in.constant(1)) {
    const std::vector<int64_t> axis = in.integers(1, "axis");
    if (axis.size() != 1) throw fail(E::shape_mismatch, "axis has {} values, one is expected", axis.size());
    normalize_axis(axis[0], in.shape(0).rank());
  }
  return {{in.dtype(0), in.shape(0)}};
}

template <bool kProduct>
std::vector<Tensor> Cumulative<kProduct>::reference(const Attrs& a, Tensors in, Precision) {
  const Tensor& x = *in[0];
  const size_t axis = normalize_axis(in[1]->integer(0), x.rank());
  const int64_t n = x.dim(axis), outer = product(x.sizes(), 0, axis), inner = product(x.sizes(), axis + 1, x.rank());
  const bool floats = is_float(x.dtype());
  Tensor y(x.dtype(), x.sizes());
  for (int64_t r = 0; r < outer * inner; ++r) {
    double total = kProduct ? 1 : 0;
    uint64_t whole = kProduct ? 1 : 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = (r / inner * n + (a.reverse ? n - 1 - i : i)) * inner + r % inner;
      const double before = total;
      const uint64_t whole_before = whole;
      if (floats) {
        total = kProduct ? total * x.real(at) : total + x.real(at);
        y.set_real(at, a.exclusive ? before : total);
      } else {
        const auto value = static_cast<uint64_t>(x.integer(at));
        whole = kProduct ? whole * value : whole + value;
        set_wrapped(y, at, static_cast<int64_t>(a.exclusive ? whole_before : whole));
      }
    }
  }
  return {y};
}

template struct Cumulative<false>;
template struct Cumulative<true>;

}  // namespace opfuse
