// Shape arithmetic of operators that only move elements: where each goes is seen on their positions.
#pragma once

#include <numeric>

#include "ops/declare.hpp"

namespace opfuse {

/// OpInfo::dims of `Op`, whose first operand is moved as the constant ones say; nothing where those are computed.
template <class Op>
std::optional<std::vector<Dim>> moved_dims(const typename Op::Attrs& attrs, const Inference& in) {
  const auto values = in.dims(0);
  if (!values) return std::nullopt;
  std::vector<int64_t> positions(values->size());
  std::iota(positions.begin(), positions.end(), 0);
  const Tensor table = Tensor::from_i64(positions).reshaped(in.shape(0).evaluate({}));
  std::vector<const Tensor*> operands{&table};
  for (size_t i = 1; i < in.inputs(); ++i) {
    if (in.has(i) && !in.constant(i)) return std::nullopt;
    operands.push_back(in.has(i) ? in.constant(i) : nullptr);
  }
  std::vector<Dim> moved;
  for (int64_t position : Op::reference(attrs, operands, {})[0].to_i64())
    moved.push_back((*values)[static_cast<size_t>(position)]);
  return moved;
}

}  // namespace opfuse
