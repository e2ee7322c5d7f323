// Symbolic values of shape arithmetic: what Shape -> Gather -> Mul -> Concat computes, as Dims.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse {

/// Elements of a small integer or boolean value, row-major, as expressions over the graph's symbols, when it
/// is constant or computed from shapes by operators that have OpInfo::dims; nothing otherwise.
std::optional<std::vector<Dim>> dim_values(const Value& value);

/// As many elements as a shape computation can have; larger values are data.
inline constexpr int64_t kMaxDimValues = 64;

}  // namespace opfuse
