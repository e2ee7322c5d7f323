// What writing a row of data as digits (cpu/contraction/digits.hpp) takes from each of its elements.
#pragma once

#include <optional>
#include <utility>

#include "program/program.hpp"
#include "proof/error_bound.hpp"

namespace opfuse {

/// The data operand of a launch, and its numbers with errors: 2^-23 of the largest of the neighbours that may share an
/// exponent. None: the launch multiplies floats, or these operands have several rows.
std::optional<std::pair<size_t, BoundedTensor>> digit_errors(const Launch& launch, const std::vector<Tensor>& operands,
                                                             const BoundOptions& options);

}  // namespace opfuse
