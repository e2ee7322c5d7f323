// Turning an operator struct into an OpInfo. An operator is a plain struct with
//
//   struct Attrs { ...; template <class S, class F> static void each(S&, F&&); };
//   static OpSpec spec();                                     name, ports, kind, doc
// and either a law (elementwise; inference, reference and expressions follow from it)
//   template <class S> static S eval(const Attrs&, S x [, S y, ...]);      fixed arity
//   template <class S> static S eval(const Attrs&, std::span<const S> xs); variadic/optional
// or
//   static std::vector<TensorType> infer(const Attrs&, const Inference&);
//   static std::vector<Tensor> reference(const Attrs&, Tensors inputs, Precision);
// and optionally
//   static Cost cost(const Attrs&, std::span<const TensorType> in, std::span<const TensorType> out);
//
// `declare<T>()` checks this by concept. Result dtype of a law: OpSpec::result.
#pragma once

#include "ir/graph.hpp"

namespace opfuse {

using Tensors = std::span<const Tensor* const>;  ///< null: absent optional operand

/// How an elementwise operator's result dtype follows.
enum class ResultDType { same_as_first, same_as_second, boolean, attribute_to };

struct OpSpec {
  std::string name;
  std::vector<PortSpec> inputs;
  std::vector<PortSpec> outputs = {{"y"}};
  OpKind kind = OpKind::elementwise;
  ResultDType result = ResultDType::same_as_first;
  int flops_per_element = 1;
  std::string doc;
};

template <class Op>
OpInfo declare();  // defined in ops/declare_impl.hpp, included by ops.cpp and tests only

/// NumPy broadcasting of two shapes, symbolic dimensions allowed. E::shape_mismatch.
Shape broadcast(const Shape& a, const Shape& b);

}  // namespace opfuse
