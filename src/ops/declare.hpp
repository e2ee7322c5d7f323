// Turning an operator struct into an OpInfo. An operator is a plain struct with
//
//   struct Attrs { ...; template <class S, class F> static void each(S&, F&&); };
//   static OpSpec spec();                                     name, ports, kind, doc
// and either a law (elementwise; inference, reference and expressions follow from it)
//   template <class S> static S eval(const Attrs&, S x [, S y, ...]);      fixed arity
//   template <class S> static S eval(const Attrs&, Operands<S> xs);        variadic or optional operands
//   (comparisons return Bool<S>; a boolean operand is a Bool<S>)
// or
//   static std::vector<TensorType> infer(const Attrs&, const Inference&);
//   static std::vector<Tensor> reference(const Attrs&, Tensors inputs, Precision);
// and optionally
//   static Cost cost(const Attrs&, std::span<const TensorType> in, std::span<const TensorType> out);
//   static std::optional<std::vector<Dim>> dims(const Attrs&, const Inference&);   shape arithmetic, OpInfo::dims
//   static constexpr bool kNoRealLaw = true;   the law has no meaning on plain doubles (casts, bit operations)
//
// `declare<T>()` checks this by concept. Result dtype of a law: OpSpec::result. An operator may have a law
// and its own infer or reference too; its own then replace the derived ones.
#pragma once

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "expr/domain.hpp"
#include "ir/graph.hpp"

namespace opfuse {

using Tensors = std::span<const Tensor* const>;  ///< null: absent optional operand

struct NoAttrs {
  template <class Self, class F>
  static void each(Self&, F&&) {}
};

/// Operands of a variadic law: null where an optional operand is absent.
template <class S>
using Operands = std::span<const S* const>;

inline PortSpec optional_port(std::string name) { return {std::move(name), true, false}; }
inline PortSpec variadic_port(std::string name) { return {std::move(name), false, true}; }

/// How an elementwise operator's result dtype follows.
enum class ResultDType { same_as_first, same_as_second, boolean, attribute_to };

/// Element types a law accepts for its operands (booleans that select, as in `where`, are not checked).
enum class OperandTypes { any, numeric, floats, integers, booleans };

struct OpSpec {
  std::string name;
  std::vector<PortSpec> inputs;
  std::vector<PortSpec> outputs = {{"y"}};
  OpKind kind = OpKind::elementwise;
  ResultDType result = ResultDType::same_as_first;
  int flops_per_element = 1;
  std::string doc;
  OperandTypes types = OperandTypes::any;
  Moves moves = Moves::nothing;
};

template <class Op>
OpInfo declare();  // defined in ops/declare_impl.hpp, included by ops.cpp and tests only

/// NumPy broadcasting of two shapes, symbolic dimensions allowed. E::shape_mismatch.
Shape broadcast(const Shape& a, const Shape& b);
std::vector<int64_t> broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b);

}  // namespace opfuse
