// Range: max(0, ceil((limit - start) / delta)) elements, each start + i * delta (no accumulated rounding).
#include "ops/range.hpp"

#include <algorithm>
#include <cmath>

#include "base/fail.hpp"
#include "ir/dim_values.hpp"
#include "ops/checks.hpp"

namespace opfuse {
namespace {

// Terabytes: no legal model has such a sequence, and no machine would hold it.
constexpr double kMaxElements = 1e12;

int64_t real_count(double start, double limit, double delta) {
  if (delta == 0 || std::isnan(delta)) throw fail(E::bad_dimension, "the step of range is {}", delta);
  const double n = std::ceil((limit - start) / delta);
  if (!(n <= kMaxElements)) throw fail(E::bad_dimension, "range from {} to {} by {} is endless", start, limit, delta);
  return std::max<int64_t>(0, static_cast<int64_t>(n));
}

int64_t integer_count(int64_t start, int64_t limit, int64_t delta) {
  if (delta == 0) throw fail(E::bad_dimension, "the step of range is 0");
  const auto distance = static_cast<__int128>(limit) - start;
  const auto n = distance / delta + (distance % delta != 0 && (distance > 0) == (delta > 0) ? 1 : 0);
  if (n > static_cast<__int128>(kMaxElements))
    throw fail(E::bad_dimension, "range from {} to {} by {} is endless", start, limit, delta);
  return n < 0 ? 0 : static_cast<int64_t>(n);
}

int64_t count_of(const Tensor& start, const Tensor& limit, const Tensor& delta) {
  if (start.elements() != 1 || limit.elements() != 1 || delta.elements() != 1)
    throw fail(E::shape_mismatch, "the operands of range must be scalars");
  return is_float(start.dtype()) ? real_count(start.real(0), limit.real(0), delta.real(0))
                                 : integer_count(start.integer(0), limit.integer(0), delta.integer(0));
}

/// The operand where it is a whole number: a constant, or a size.
std::optional<Dim> whole(const Inference& in, size_t i) {
  if (const Tensor* t = in.constant(i); t && is_float(t->dtype()) && t->elements() == 1) {
    const double v = t->real(0);
    return v == std::nearbyint(v) && std::fabs(v) < kMaxElements ? std::optional(Dim(static_cast<int64_t>(v)))
                                                                 : std::nullopt;
  }
  const auto dims = in.dims(i);
  return dims && dims->size() == 1 ? std::optional((*dims)[0]) : std::nullopt;
}

}  // namespace

std::vector<TensorType> Range::infer(const Attrs&, const Inference& in) {
  for (size_t i = 1; i < 3; ++i)
    if (in.dtype(i) != in.dtype(0))
      throw fail(E::dtype_mismatch, "the operands of range are {} and {}", name_of(in.dtype(0)), name_of(in.dtype(i)));
  if (in.constant(0) && in.constant(1) && in.constant(2))
    return {{in.dtype(0), Shape{count_of(*in.constant(0), *in.constant(1), *in.constant(2))}}};
  const auto start = whole(in, 0), limit = whole(in, 1), delta = whole(in, 2);
  if (!start || !limit || !delta || !delta->is_constant()) return unranked(in, in.dtype(0));
  const int64_t step = delta->value();
  if (step == 0) throw fail(E::bad_dimension, "the step of range is 0");
  const Dim distance = step > 0 ? *limit - *start : *start - *limit;
  const Dim n = ceil_div(distance, Dim(step > 0 ? step : -step));
  return {{in.dtype(0), Shape{*start == Dim(0) && step > 0 && !limit->is_constant() ? n : max(n, Dim(0))}}};
}

std::vector<Tensor> Range::reference(const Attrs&, Tensors in, Precision) {
  const int64_t n = count_of(*in[0], *in[1], *in[2]);
  Tensor out(in[0]->dtype(), {n});
  if (is_float(out.dtype())) {
    const double start = in[0]->real(0), delta = in[2]->real(0);
    for (int64_t i = 0; i < n; ++i) out.set_real(i, start + static_cast<double>(i) * delta);
  } else {
    const int64_t start = in[0]->integer(0), delta = in[2]->integer(0);
    for (int64_t i = 0; i < n; ++i) set_wrapped(out, i, start + i * delta);
  }
  return {out};
}

std::optional<std::vector<Dim>> Range::dims(const Attrs&, const Inference& in) {
  auto start = in.dims(0), limit = in.dims(1), delta = in.dims(2);
  if (!start || !limit || !delta || start->size() != 1 || limit->size() != 1 || delta->size() != 1) return std::nullopt;
  const Dim from = (*start)[0], to = (*limit)[0], step = (*delta)[0];
  if (!from.is_constant() || !to.is_constant() || !step.is_constant()) return std::nullopt;
  const int64_t n = integer_count(from.value(), to.value(), step.value());
  if (n > most_dim_values()) return std::nullopt;
  std::vector<Dim> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(from + Dim(i) * step);
  return out;
}

}  // namespace opfuse
