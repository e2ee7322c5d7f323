// declare<T>(): operator struct -> OpInfo. Included by the operator lists and by tests only.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <memory>
#include <utility>
#include <vector>

#include "expr/domain.hpp"
#include "ops/attr_fields.hpp"
#include "ops/declare.hpp"
#include "ops/elementwise.hpp"

namespace opfuse {

template <class Op, class S>
concept UnaryLaw = requires(const typename Op::Attrs& a, const S& x) {
  Op::template eval<S>(a, x);
};
template <class Op, class S>
concept BinaryLaw = requires(const typename Op::Attrs& a, const S& x) {
  Op::template eval<S>(a, x, x);
};
template <class Op, class S>
concept TernaryLaw = requires(const typename Op::Attrs& a, const S& x) {
  Op::template eval<S>(a, x, x, x);
};
template <class Op, class S>
concept VariadicLaw = requires(const typename Op::Attrs& a, Operands<S> xs) {
  Op::template eval<S>(a, xs);
}
&&!UnaryLaw<Op, S>;
template <class Op>
concept HasLaw = UnaryLaw<Op, Expr> || BinaryLaw<Op, Expr> || TernaryLaw<Op, Expr> || VariadicLaw<Op, Expr>;
template <class Op>
concept HasRealLaw = HasLaw<Op> && !requires {
  Op::kNoRealLaw;
};
template <class Op>
concept HasInfer = requires(const typename Op::Attrs& a, const Inference& in) {
  { Op::infer(a, in) } -> std::same_as<std::vector<TensorType>>;
};
template <class Op>
concept HasReference = requires(const typename Op::Attrs& a, Tensors inputs, Precision precision) {
  { Op::reference(a, inputs, precision) } -> std::same_as<std::vector<Tensor>>;
};
template <class Op>
concept HasDims = requires(const typename Op::Attrs& a, const Inference& in) {
  { Op::dims(a, in) } -> std::same_as<std::optional<std::vector<Dim>>>;
};
template <class Op>
concept HasCost = requires(const typename Op::Attrs& a, std::span<const TensorType> types) {
  { Op::cost(a, types, types) } -> std::same_as<Cost>;
};

/// Calls the law with as many operands as it takes.
template <class Op, class S>
auto call_law(const typename Op::Attrs& attrs, Operands<S> xs) {
  if constexpr (UnaryLaw<Op, S>)
    return Op::template eval<S>(attrs, *xs[0]);
  else if constexpr (BinaryLaw<Op, S>)
    return Op::template eval<S>(attrs, *xs[0], *xs[1]);
  else if constexpr (TernaryLaw<Op, S>)
    return Op::template eval<S>(attrs, *xs[0], *xs[1], *xs[2]);
  else
    return Op::template eval<S>(attrs, xs);
}

/// A variadic law with a number of operands that the compiler knows: they stay in registers.
template <class Op, size_t kCount>
void fixed_row(const typename Op::Attrs& attrs, double* out, std::span<const double* const> in,
               std::span<const int64_t> step, int64_t n) {
  std::array<double, kCount> x{};
  std::array<const double*, kCount> at;
  for (size_t k = 0; k < kCount; ++k) at[k] = in[k] ? &x[k] : nullptr;
  for (int64_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < kCount; ++k)
      if (in[k]) x[k] = in[k][i * step[k]];
    out[i] = static_cast<double>(Op::template eval<double>(attrs, Operands<double>(at)));
  }
}

template <class Op>
void law_row(const void* erased, double* out, std::span<const double* const> in, std::span<const int64_t> step,
             int64_t n) {
  const auto& attrs = *static_cast<const typename Op::Attrs*>(erased);
  if constexpr (UnaryLaw<Op, double>) {
    const double* x = in[0];
    const int64_t sx = step[0];
    if (sx == 1)
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<double>(Op::template eval<double>(attrs, x[i]));
    else
      std::fill_n(out, n, static_cast<double>(Op::template eval<double>(attrs, x[0])));
  } else if constexpr (BinaryLaw<Op, double>) {
    const double *x = in[0], *y = in[1];
    const int64_t sx = step[0], sy = step[1];
    if (sx == 1 && sy == 1)
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<double>(Op::template eval<double>(attrs, x[i], y[i]));
    else
      for (int64_t i = 0; i < n; ++i)
        out[i] = static_cast<double>(Op::template eval<double>(attrs, x[i * sx], y[i * sy]));
  } else if constexpr (TernaryLaw<Op, double>) {
    const double *x = in[0], *y = in[1], *z = in[2];
    const int64_t sx = step[0], sy = step[1], sz = step[2];
    for (int64_t i = 0; i < n; ++i)
      out[i] = static_cast<double>(Op::template eval<double>(attrs, x[i * sx], y[i * sy], z[i * sz]));
  } else {
    if (in.size() == 1) return fixed_row<Op, 1>(attrs, out, in, step, n);
    if (in.size() == 2) return fixed_row<Op, 2>(attrs, out, in, step, n);
    if (in.size() == 3) return fixed_row<Op, 3>(attrs, out, in, step, n);
    std::vector<const double*> at(in.begin(), in.end());
    for (int64_t i = 0; i < n; ++i) {
      out[i] = static_cast<double>(Op::template eval<double>(attrs, Operands<double>(at)));
      for (size_t k = 0; k < at.size(); ++k)
        if (at[k]) at[k] += step[k];
    }
  }
}

template <class Op>
Scalar law_scalar(const void* attrs, std::span<const Scalar* const> operands) {
  return call_law<Op, Scalar>(*static_cast<const typename Op::Attrs*>(attrs), operands);
}

template <class Op>
Expr law_expr(const void* attrs, std::span<const Expr> operands) {
  std::vector<const Expr*> pointers(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) pointers[i] = operands[i] ? &operands[i] : nullptr;
  return call_law<Op, Expr>(*static_cast<const typename Op::Attrs*>(attrs), pointers);
}

template <class Op>
ElementwiseLaw law_of() {
  ElementwiseLaw law;
  law.spec = Op::spec();
  if constexpr (HasRealLaw<Op>) law.row = law_row<Op>;
  law.one = law_scalar<Op>;
  law.expr = law_expr<Op>;
  if constexpr (requires(const typename Op::Attrs& a) {
                  { a.to } -> std::convertible_to<DType>;
                })
    law.to = [](const void* attrs) { return static_cast<const typename Op::Attrs*>(attrs)->to; };
  return law;
}

template <class Op>
OpInfo declare() {
  using Attrs = typename Op::Attrs;
  static_assert(HasLaw<Op> || (HasInfer<Op> && HasReference<Op>),
                "an operator has a law (eval), or both infer and reference");
  const OpSpec spec = Op::spec();
  OpInfo info;
  info.name = spec.name;
  info.kind = spec.kind;
  info.moves = spec.moves;
  info.inputs = spec.inputs;
  info.outputs = spec.outputs;
  info.doc = spec.doc;
  info.flops_per_element = spec.flops_per_element;
  info.default_attrs = attrs_to_map(Attrs{});
  info.attrs_from_map = [name = spec.name](const AttrMap& map) -> std::shared_ptr<const void> {
    return std::make_shared<const Attrs>(attrs_from_map<Attrs>(map, name));
  };
  info.attrs_to_map = [](const void* attrs) { return attrs_to_map(*static_cast<const Attrs*>(attrs)); };

  if constexpr (HasLaw<Op>) info.law = law_expr<Op>;
  if constexpr (HasInfer<Op>)
    info.infer = [](const void* a, const Inference& in) { return Op::infer(*static_cast<const Attrs*>(a), in); };
  else
    info.infer = [law = law_of<Op>()](const void* a, const Inference& in) { return infer_elementwise(law, a, in); };
  if constexpr (HasReference<Op>)
    info.reference = [](const void* a, Tensors in, Precision p) {
      return Op::reference(*static_cast<const Attrs*>(a), in, p);
    };
  else
    info.reference = [law = law_of<Op>()](const void* a, Tensors in, Precision p) {
      return run_elementwise(law, a, in, p);
    };
  if constexpr (HasDims<Op>)
    info.dims = [](const void* a, const Inference& in) { return Op::dims(*static_cast<const Attrs*>(a), in); };
  else if constexpr (HasLaw<Op>)
    info.dims = [law = law_of<Op>()](const void* a, const Inference& in) { return elementwise_dims(law, a, in); };
  if constexpr (HasCost<Op>)
    info.cost = [](const void* a, std::span<const TensorType> in, std::span<const TensorType> out) {
      return Op::cost(*static_cast<const Attrs*>(a), in, out);
    };
  else
    info.cost = [flops = spec.flops_per_element](const void*, std::span<const TensorType>,
                                                 std::span<const TensorType> out) {
      return elementwise_cost(flops, out);
    };
  return info;
}

}  // namespace opfuse
