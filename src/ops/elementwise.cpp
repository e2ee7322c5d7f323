// Inference and reference of elementwise operators, from their law.
//
// A broadcast is a loop nest over the result with one step per operand and dimension (0 where it
// stretches). Adjacent dimensions that every operand walks alike are merged, so that a bias on
// [N,C,H,W] becomes two loops and equal shapes become one. The innermost loop is the law's row function.
#include "ops/elementwise.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "base/parallel.hpp"
#include "base/product_of.hpp"

namespace opfuse {
namespace {

constexpr int64_t kRealChunk = 1 << 15;  // elements per task: some 30 us of cheap arithmetic
constexpr int64_t kScalarChunk = 1 << 12;

bool accepts(OperandTypes types, DType dtype) {
  switch (types) {
    case OperandTypes::any:
      return byte_size(dtype) > 0;
    case OperandTypes::numeric:
      return is_float(dtype) || is_integer(dtype);
    case OperandTypes::floats:
      return is_float(dtype);
    case OperandTypes::integers:
      return is_integer(dtype);
    case OperandTypes::booleans:
      return dtype == DType::boolean;
  }
  return false;
}

std::string_view words(OperandTypes types) {
  static constexpr std::string_view kWords[] = {"numbers and booleans", "numbers", "floats", "integers", "booleans"};
  return kWords[static_cast<size_t>(types)];
}

const PortSpec& port(const OpSpec& spec, size_t i) { return spec.inputs[std::min(i, spec.inputs.size() - 1)]; }

/// Merged loop nest over the result; step[k][d] belongs to operand k.
struct Nest {
  std::vector<int64_t> extent;
  std::vector<std::vector<int64_t>> step;
};

Nest make_nest(const std::vector<int64_t>& sizes, Tensors operands) {
  Nest nest;
  nest.step.resize(operands.size());
  std::vector<std::vector<int64_t>> steps;  // per operand, of all dimensions of the result
  for (const Tensor* t : operands) {
    std::vector<int64_t> step(sizes.size(), 0);
    int64_t stride = 1;
    for (size_t back = 0; t && back < t->rank(); ++back) {
      const int64_t size = t->dim(t->rank() - 1 - back);
      if (size != 1) step[sizes.size() - 1 - back] = stride;
      stride *= size;
    }
    steps.push_back(std::move(step));
  }
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    bool merges = !nest.extent.empty();
    for (size_t k = 0; merges && k < steps.size(); ++k) merges = nest.step[k].back() == steps[k][d] * sizes[d];
    if (merges)
      nest.extent.back() *= sizes[d];
    else
      nest.extent.push_back(sizes[d]);
    for (size_t k = 0; k < steps.size(); ++k) {
      if (merges)
        nest.step[k].back() = steps[k][d];
      else
        nest.step[k].push_back(steps[k][d]);
    }
  }
  if (nest.extent.empty()) {
    nest.extent.push_back(1);
    for (auto& step : nest.step) step.push_back(0);
  }
  return nest;
}

/// Calls body(first result element, element offset per operand, length) for pieces of rows.
template <class Body>
void for_rows(const Nest& nest, int64_t total, int64_t chunk, const Body& body) {
  const int64_t inner = nest.extent.back();
  parallel_for((total + chunk - 1) / chunk, [&](int64_t part) {
    const int64_t end = std::min(total, (part + 1) * chunk);
    std::vector<int64_t> offset(nest.step.size());
    for (int64_t at = part * chunk; at < end;) {
      const int64_t column = at % inner, length = std::min(inner - column, end - at);
      int64_t row = at / inner;
      for (size_t k = 0; k < offset.size(); ++k) offset[k] = column * nest.step[k].back();
      for (size_t d = nest.extent.size() - 1; d-- > 0; row /= nest.extent[d])
        for (size_t k = 0; k < offset.size(); ++k) offset[k] += row % nest.extent[d] * nest.step[k][d];
      body(at, offset, length);
      at += length;
    }
  });
}

DType result_of(const ElementwiseLaw& law, const void* attrs, Tensors inputs, Precision precision) {
  DType dtype = DType::boolean;
  if (law.spec.result == ResultDType::same_as_first) dtype = inputs[0]->dtype();
  if (law.spec.result == ResultDType::same_as_second) dtype = inputs[1]->dtype();
  if (law.spec.result == ResultDType::attribute_to) dtype = law.to(attrs);
  return precision == Precision::exact && is_float(dtype) ? DType::f64 : dtype;
}

Tensor run_reals(const ElementwiseLaw& law, const void* attrs, Tensors inputs, const std::vector<int64_t>& sizes,
                 DType result) {
  std::vector<Tensor> held(inputs.size());
  std::vector<const double*> data(inputs.size(), nullptr);
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k]) continue;
    held[k] = inputs[k]->dtype() == DType::f64 ? *inputs[k] : inputs[k]->cast(DType::f64);
    data[k] = held[k].view<double>().data();
  }
  Tensor out(DType::f64, sizes);
  double* to = out.mutable_view<double>().data();
  const Nest nest = make_nest(sizes, inputs);
  std::vector<int64_t> step;
  for (const auto& each : nest.step) step.push_back(each.back());
  for_rows(nest, product_of(sizes), kRealChunk, [&](int64_t at, const std::vector<int64_t>& offset, int64_t length) {
    std::vector<const double*> from(data);
    for (size_t k = 0; k < from.size(); ++k)
      if (from[k]) from[k] += offset[k];
    law.row(attrs, to + at, from, step, length);
  });
  return result == DType::f64 ? out : out.cast(result);
}

ScalarValue element(const Tensor& t, int64_t i) {
  if (is_float(t.dtype())) return {t.dtype(), t.real(i), 0};
  return {t.dtype(), 0, t.integer(i)};
}

/// A result is already in its dtype; u64 travels as its bits.
void store(Tensor& out, int64_t i, const ScalarValue& y) {
  if (is_float(out.dtype()))
    out.set_real(i, y.as_real());
  else if (out.dtype() == DType::u64)
    static_cast<int64_t*>(out.mutable_data())[i] = y.integer;
  else
    out.set_integer(i, y.as_integer());
}

Tensor run_scalars(const ElementwiseLaw& law, const void* attrs, Tensors inputs, const std::vector<int64_t>& sizes,
                   DType result, Precision precision) {
  Tensor out(result, sizes);
  const Nest nest = make_nest(sizes, inputs);
  for_rows(nest, product_of(sizes), kScalarChunk, [&](int64_t at, const std::vector<int64_t>& offset, int64_t length) {
    std::vector<Scalar> values(inputs.size());
    std::vector<const Scalar*> operands(inputs.size(), nullptr);
    for (int64_t i = 0; i < length; ++i) {
      for (size_t k = 0; k < inputs.size(); ++k) {
        if (!inputs[k]) continue;
        values[k] = Scalar(element(*inputs[k], offset[k] + i * nest.step[k].back()), precision);
        operands[k] = &values[k];
      }
      store(out, at + i, law.one(attrs, operands).v);
    }
  });
  return out;
}

bool is_real(const Tensor* t) { return !t || is_float(t->dtype()) || t->dtype() == DType::boolean; }

}  // namespace

std::vector<TensorType> infer_elementwise(const ElementwiseLaw& law, const void* attrs, const Inference& in) {
  if (law.to && byte_size(law.to(attrs)) == 0)
    throw fail(E::unsupported_dtype, "{} to {} is not supported", law.spec.name, name_of(law.to(attrs)));
  std::vector<Expr> operands(in.inputs());
  Shape shape;
  bool known = true;
  for (size_t i = 0; i < in.inputs(); ++i) {
    if (!in.has(i)) {
      known = known && port(law.spec, i).optional;
      continue;
    }
    if (!accepts(law.spec.types, in.dtype(i)))
      throw fail(E::unsupported_dtype, "{} takes {}, but its operand {} is {}", law.spec.name, words(law.spec.types),
                 port(law.spec, i).name, name_of(in.dtype(i)));
    operands[i] = Expr::read(static_cast<int>(i), in.dtype(i));
    shape = broadcast(shape, in.shape(i));
  }
  if (!known) return {{DType::unknown, Shape::unknown()}};
  return {{law.expr(attrs, operands).dtype(), shape}};
}

std::vector<Tensor> run_elementwise(const ElementwiseLaw& law, const void* attrs, Tensors inputs, Precision precision) {
  std::vector<int64_t> sizes;
  for (const Tensor* t : inputs)
    if (t) sizes = broadcast(sizes, t->sizes());
  const DType result = result_of(law, attrs, inputs, precision);
  const bool reals =
      law.row && std::all_of(inputs.begin(), inputs.end(), is_real) && (is_float(result) || result == DType::boolean);
  if (reals) return {run_reals(law, attrs, inputs, sizes, result)};
  return {run_scalars(law, attrs, inputs, sizes, result, precision)};
}

Cost elementwise_cost(int flops_per_element, std::span<const TensorType> out) {
  Cost cost;
  if (!out.empty() && out[0].shape.ranked) cost.flops = out[0].shape.elements() * Dim(flops_per_element);
  return cost;
}

}  // namespace opfuse
