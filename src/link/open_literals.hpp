// Many maps that differ by numbers in their expressions alone share one kernel: the numbers become an operand.
#pragma once

#include <optional>
#include <vector>

#include "kernel/spec.hpp"

namespace opfuse {

/// The f32 numbers of a map that a kernel might as well read, in the order of its expressions.
struct Literals {
  std::vector<Expr> nodes;
  std::vector<float> values() const;
};

/// Nothing where there are none, or where what is emitted depends on them (codes, powers).
std::optional<Literals> literals_of(const KernelSpec& spec);

/// The same map, which reads those of its literals that are `open` from one more parameter, the last. Nothing where a
/// function would no longer be recognised.
std::optional<KernelSpec> with_open(const KernelSpec& spec, const Literals& literals, const std::vector<bool>& open);

}  // namespace opfuse
