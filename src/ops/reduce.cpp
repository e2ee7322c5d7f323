// Reductions. A law is start, step and finish over one accumulator: double for floats, 64-bit integer (wrapping) for
// integers. The walk visits the operand once in memory order and adds each element to its result.
// log_sum_exp subtracts the largest element first, so it takes a second walk.
#include "ops/reduce.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "tensor/number.hpp"

namespace opfuse {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Which result each element belongs to: strides of the result per operand axis, 0 on reduced axes.
struct Plan {
  std::vector<int64_t> sizes, strides;  ///< operand sizes, result strides
  std::vector<int64_t> kept;            ///< result sizes with reduced axes 1
  int64_t results = 1, per_result = 1;
};

Plan plan_of(const std::vector<int64_t>& sizes, const std::vector<int64_t>& axes) {
  Plan p{.sizes = sizes, .strides = std::vector<int64_t>(sizes.size(), 0), .kept = sizes};
  for (int64_t a : axes) {
    p.kept[size_t(a)] = 1;
    p.per_result *= sizes[size_t(a)];
  }
  for (size_t i = sizes.size(); i-- > 0;) {
    if (std::find(axes.begin(), axes.end(), int64_t(i)) == axes.end()) p.strides[i] = p.results;
    p.results *= p.kept[i];
  }
  return p;
}

/// Calls visit(element, result) in row-major order.
template <class F>
void walk(const Plan& p, F&& visit) {
  const size_t rank = p.sizes.size();
  const int64_t count = product(p.sizes, 0, rank);
  const int64_t inner = rank == 0 ? 1 : p.sizes.back(), step = rank == 0 ? 0 : p.strides.back();
  std::vector<int64_t> at(rank, 0);
  int64_t result = 0;
  for (int64_t i = 0; i < count; i += inner) {
    for (int64_t j = 0; j < inner; ++j) visit(i + j, result + j * step);
    for (size_t d = rank < 2 ? 0 : rank - 1; d-- > 0;) {
      result += p.strides[d];
      if (++at[d] < p.sizes[d]) break;
      result -= p.strides[d] * p.sizes[d];
      at[d] = 0;
    }
  }
}

double start(ReduceLaw k) {
  return k == ReduceLaw::max ? -kInfinity : k == ReduceLaw::min ? kInfinity : k == ReduceLaw::prod ? 1 : 0;
}

template <ReduceLaw kKind>
double step(double acc, double x) {
  switch (kKind) {
    case ReduceLaw::max:
      return maximum(acc, x);
    case ReduceLaw::min:
      return minimum(acc, x);
    case ReduceLaw::prod:
      return acc * x;
    case ReduceLaw::l1:
      return acc + std::fabs(x);
    case ReduceLaw::l2:
    case ReduceLaw::sum_square:
      return acc + x * x;
    default:
      return acc + x;
  }
}

double finish(ReduceLaw k, double acc, int64_t n) {
  switch (k) {
    case ReduceLaw::mean:
      return acc / static_cast<double>(n);
    case ReduceLaw::l2:
      return std::sqrt(acc);
    case ReduceLaw::log_sum:
      return std::log(acc);
    default:
      return acc;
  }
}

template <ReduceLaw kKind>
Tensor reduce_reals(const Tensor& t, const Plan& p) {
  const Reals x(t);
  Tensor y(DType::f64, p.kept);
  double* out = reals(y);
  if constexpr (kKind == ReduceLaw::log_sum_exp) {
    std::vector<double> top(size_t(p.results), -kInfinity);
    walk(p, [&](int64_t i, int64_t r) { top[size_t(r)] = maximum(top[size_t(r)], x[i]); });
    // An infinite maximum is the answer itself; subtracting it would give NaN.
    walk(p, [&](int64_t i, int64_t r) { out[r] += std::isinf(top[size_t(r)]) ? 0 : std::exp(x[i] - top[size_t(r)]); });
    for (int64_t r = 0; r < p.results; ++r)
      out[r] = std::isinf(top[size_t(r)]) ? top[size_t(r)] : std::log(out[r]) + top[size_t(r)];
  } else {
    std::fill_n(out, p.results, start(kKind));
    walk(p, [&](int64_t i, int64_t r) { out[r] = step<kKind>(out[r], x[i]); });
    for (int64_t r = 0; r < p.results; ++r) out[r] = finish(kKind, out[r], p.per_result);
  }
  return y;
}

/// Of no elements, the greatest is the least value of the type: false among booleans. u64 travels as its bits.
int64_t integer_start(ReduceLaw k, DType dtype) {
  if (k == ReduceLaw::max) return integer_min(dtype);
  if (k == ReduceLaw::min) return dtype == DType::u64 ? -1 : integer_max(dtype);
  return k == ReduceLaw::prod;
}

/// kUnsigned: u64, whose bits compare as they are; all other types lie within i64.
template <ReduceLaw kKind, bool kUnsigned>
int64_t integer_step(int64_t acc, int64_t x) {
  const auto a = static_cast<uint64_t>(acc), b = static_cast<uint64_t>(x);  // wraps
  switch (kKind) {
    case ReduceLaw::max:
      return kUnsigned ? static_cast<int64_t>(std::max(a, b)) : std::max(acc, x);
    case ReduceLaw::min:
      return kUnsigned ? static_cast<int64_t>(std::min(a, b)) : std::min(acc, x);
    case ReduceLaw::prod:
      return static_cast<int64_t>(a * b);
    case ReduceLaw::l1:
      return static_cast<int64_t>(!kUnsigned && x < 0 ? a - b : a + b);
    case ReduceLaw::sum_square:
      return static_cast<int64_t>(a + b * b);
    default:
      return static_cast<int64_t>(a + b);
  }
}

int64_t mean_of(int64_t sum, int64_t count, bool is_u64) {
  if (count == 0) return 0;
  return is_u64 ? static_cast<int64_t>(static_cast<uint64_t>(sum) / static_cast<uint64_t>(count)) : sum / count;
}

template <ReduceLaw kKind>
Tensor reduce_integers(const Tensor& x, const Plan& p) {
  const bool is_u64 = x.dtype() == DType::u64;
  std::vector<int64_t> acc(size_t(p.results), integer_start(kKind, x.dtype()));
  walk(p, [&](int64_t i, int64_t r) {
    int64_t& at = acc[size_t(r)];
    at = is_u64 ? integer_step<kKind, true>(at, x.integer(i)) : integer_step<kKind, false>(at, x.integer(i));
  });
  Tensor y(x.dtype(), p.kept);
  for (int64_t r = 0; r < p.results; ++r) {
    const int64_t sum = acc[size_t(r)], value = kKind == ReduceLaw::mean ? mean_of(sum, p.per_result, is_u64) : sum;
    set_wrapped(y, r, value);
  }
  return y;
}

constexpr bool is_exact_on_integers(ReduceLaw k) {
  return k != ReduceLaw::l2 && k != ReduceLaw::log_sum && k != ReduceLaw::log_sum_exp;
}

const char* name_of_kind(ReduceLaw k) {
  static constexpr const char* kNames[] = {"reduce_mean",        "reduce_sum",       "reduce_max", "reduce_min",
                                           "reduce_prod",        "reduce_l1",        "reduce_l2",  "reduce_log_sum",
                                           "reduce_log_sum_exp", "reduce_sum_square"};
  return kNames[static_cast<size_t>(k)];
}

const char* doc_of_kind(ReduceLaw k) {
  static constexpr const char* kDocs[] = {"Mean over axes.",
                                          "Sum over axes.",
                                          "Largest element over axes.",
                                          "Smallest element over axes.",
                                          "Product over axes.",
                                          "Sum of absolute values over axes.",
                                          "Euclidean norm over axes.",
                                          "Logarithm of the sum over axes.",
                                          "Logarithm of the sum of exponentials over axes.",
                                          "Sum of squares over axes."};
  return kDocs[static_cast<size_t>(k)];
}

Shape reduced_shape(const Shape& x, const std::vector<int64_t>& axes, bool keepdims) {
  Shape y;
  for (size_t i = 0; i < x.rank(); ++i) {
    const bool reduced = std::find(axes.begin(), axes.end(), int64_t(i)) != axes.end();
    if (!reduced)
      y.dims.push_back(x[i]);
    else if (keepdims)
      y.dims.push_back(Dim(1));
  }
  return y;
}

}  // namespace

std::vector<int64_t> reduced_axes(const ReduceAttrs& a, const std::vector<int64_t>* operand, size_t rank) {
  std::vector<int64_t> axes = operand ? *operand : a.axes;
  if (axes.empty() && !a.noop_with_empty_axes)
    for (size_t i = 0; i < rank; ++i) axes.push_back(int64_t(i));
  else
    for (int64_t& axis : axes) axis = static_cast<int64_t>(normalize_axis(axis, rank, "reduced axis"));
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    throw fail(E::bad_attribute, "an axis is reduced twice: {}", text_of(axes));
  return axes;
}

template <ReduceLaw kKind>
OpSpec Reduce<kKind>::spec() {
  return {.name = name_of_kind(kKind),
          .inputs = {{"x"}, {.name = "axes", .optional = true}},
          .outputs = {{"y"}},
          .kind = OpKind::reduction,
          .doc = doc_of_kind(kKind)};
}

template <ReduceLaw kKind>
std::vector<TensorType> Reduce<kKind>::infer(const Attrs& a, const Inference& in) {
  const bool orders = kKind == ReduceLaw::max || kKind == ReduceLaw::min;
  if (!(orders && in.dtype(0) == DType::boolean)) require_numeric(in, 0);
  if (!in.shape(0).ranked) return unranked(in, in.dtype(0));
  std::vector<int64_t> operand;
  if (in.has(1)) operand = in.integers(1, "axes");
  const auto axes = reduced_axes(a, in.has(1) ? &operand : nullptr, in.shape(0).rank());
  return {{in.dtype(0), reduced_shape(in.shape(0), axes, a.keepdims)}};
}

template <ReduceLaw kKind>
std::vector<Tensor> Reduce<kKind>::reference(const Attrs& a, Tensors in, Precision) {
  const Tensor& x = *in[0];
  std::vector<int64_t> operand;
  const bool given = in.size() > 1 && in[1];
  if (given) operand = in[1]->to_i64();
  const auto axes = reduced_axes(a, given ? &operand : nullptr, x.rank());
  const Plan plan = plan_of(x.sizes(), axes);
  const auto sizes = reduced_shape(Shape::of(x.sizes()), axes, a.keepdims).sizes();
  if (!is_float(x.dtype()) && is_exact_on_integers(kKind)) return {reduce_integers<kKind>(x, plan).reshaped(sizes)};
  return {rounded(reduce_reals<kKind>(x, plan), x.dtype()).reshaped(sizes)};
}

template <ReduceLaw kKind>
std::optional<std::vector<Dim>> Reduce<kKind>::dims(const Attrs& a, const Inference& in) {
  if constexpr (kKind != ReduceLaw::sum && kKind != ReduceLaw::prod && kKind != ReduceLaw::max &&
                kKind != ReduceLaw::min)
    return std::nullopt;
  const auto values = in.dims(0);
  if (!values || values->empty() || !in.shape(0).ranked || in.shape(0).rank() != 1) return std::nullopt;
  std::vector<int64_t> operand;
  if (in.has(1)) operand = in.integers(1, "axes");
  if (reduced_axes(a, in.has(1) ? &operand : nullptr, 1).empty()) return values;
  Dim result = values->front();
  for (size_t i = 1; i < values->size(); ++i) {
    const Dim& v = (*values)[i];
    result = kKind == ReduceLaw::sum    ? result + v
             : kKind == ReduceLaw::prod ? result * v
             : kKind == ReduceLaw::max  ? max(result, v)
                                        : min(result, v);
  }
  return std::vector<Dim>{result};
}

template <ReduceLaw kKind>
Cost Reduce<kKind>::cost(const Attrs&, std::span<const TensorType> in, std::span<const TensorType> out) {
  if (!in[0].shape.ranked || !out[0].shape.ranked) return {};
  const bool two = kKind == ReduceLaw::l1 || kKind == ReduceLaw::l2 || kKind == ReduceLaw::sum_square;
  const int64_t per_element = kKind == ReduceLaw::log_sum_exp ? 4 : two ? 2 : 1;
  const bool finishes = kKind == ReduceLaw::mean || kKind == ReduceLaw::l2 || kKind == ReduceLaw::log_sum ||
                        kKind == ReduceLaw::log_sum_exp;
  return {.flops = in[0].shape.elements() * Dim(per_element) + (finishes ? out[0].shape.elements() : Dim(0))};
}

template struct Reduce<ReduceLaw::mean>;
template struct Reduce<ReduceLaw::sum>;
template struct Reduce<ReduceLaw::max>;
template struct Reduce<ReduceLaw::min>;
template struct Reduce<ReduceLaw::prod>;
template struct Reduce<ReduceLaw::l1>;
template struct Reduce<ReduceLaw::l2>;
template struct Reduce<ReduceLaw::log_sum>;
template struct Reduce<ReduceLaw::log_sum_exp>;
template struct Reduce<ReduceLaw::sum_square>;

}  // namespace opfuse
