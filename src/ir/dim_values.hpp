// Symbolic values of shape arithmetic: what Shape -> Gather -> Mul -> Concat computes, as Dims.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse {

/// Elements of a small integer or boolean value (or of such a value cast to reals), row-major, as expressions over the
/// graph's symbols, when it is constant or computed from shapes by operators that have OpInfo::dims; nothing otherwise.
std::optional<std::vector<Dim>> dim_values(const Value& value);

/// The same for many values of one graph, each evaluated once. What is known of a value stays true while others are
/// replaced.
class DimEvaluator {
 public:
  std::optional<std::vector<Dim>> of(const Value& value);

 private:
  using Dims = std::optional<std::vector<Dim>>;
  std::map<int, Dims> known_;  ///< by value id
  Dims attempt(const Node& node, std::vector<const Value*>& missing) const;
  Dims attempt_body(const Value& value, std::vector<const Value*>& missing) const;
};

/// Limits::shape_values: larger values are data.
int64_t most_dim_values();

}  // namespace opfuse
