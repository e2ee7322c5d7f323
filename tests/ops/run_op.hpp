// Running one operator on tensors, for the tests of operators.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/fail.hpp"
#include "ops/declare.hpp"
#include "ops/registry.hpp"

namespace opfuse {

inline std::vector<const Tensor*> pointers(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> out;
  for (const Tensor& t : tensors) out.push_back(t.empty() ? nullptr : &t);  // an empty Tensor: absent operand
  return out;
}

inline std::vector<Tensor> run_all(std::string_view op, const AttrMap& attrs, const std::vector<Tensor>& inputs,
                                   Precision precision = Precision::typed) {
  const OpInfo* info = op_named(op);
  return info->reference(info->attrs_from_map(attrs).get(), pointers(inputs), precision);
}

inline Tensor run_op(std::string_view op, const AttrMap& attrs, const std::vector<Tensor>& inputs,
                     Precision precision = Precision::typed) {
  return run_all(op, attrs, inputs, precision).at(0);
}

/// Inference with the types of the operands; those in `constant` also with their values.
inline std::vector<TensorType> infer_op(std::string_view op, const AttrMap& attrs, const std::vector<Tensor>& inputs,
                                        size_t outputs = 1) {
  const OpInfo* info = op_named(op);
  std::vector<TensorType> types;
  for (const Tensor& t : inputs) types.push_back(t.empty() ? TensorType{} : t.type());
  const auto constants = pointers(inputs);
  return info->infer(info->attrs_from_map(attrs).get(), Inference(types, constants, outputs));
}

/// Inference from types alone; `dims` gives elements of shape operands.
inline TensorType infer_types(std::string_view op, const AttrMap& attrs, const std::vector<TensorType>& types,
                              const std::map<size_t, std::vector<Dim>>& dims = {}) {
  const OpInfo* info = op_named(op);
  auto values = [&](size_t i) -> std::optional<std::vector<Dim>> {
    auto found = dims.find(i);
    return found == dims.end() ? std::nullopt : std::optional(found->second);
  };
  return info->infer(info->attrs_from_map(attrs).get(), Inference(types, {}, 1, values)).at(0);
}

inline Tensor reals(DType dtype, const std::vector<double>& values) {
  return Tensor::of(dtype, {static_cast<int64_t>(values.size())}, values);
}

inline Tensor integers(DType dtype, const std::vector<int64_t>& values) {
  Tensor t(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) t.set_integer(static_cast<int64_t>(i), values[i]);
  return t;
}

/// The code of the error that `f` throws, or "none".
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.diagnostic().name;
  }
  return "none";
}

}  // namespace opfuse
