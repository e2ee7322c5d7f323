// Spellings: the ways in which exporters write an operator that has a name, and what recomposing passes share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "match/matcher.hpp"
#include "passes/report.hpp"

namespace opfuse {

/// One way to write an operator.
struct Spelling {
  std::string op;    ///< "gelu"
  std::string form;  ///< "x * 0.5 * (1 + erf(x / sqrt 2))"
  Pattern pattern;   ///< starts at any("x")
  std::vector<MatchPredicate> where;
  /// Attributes when the single operator is bit for bit the same; otherwise the nodes become a composite's body.
  std::function<AttrMap(const Match&)> exact;
};

/// The catalogue of spellings, longest first where one contains another.
const std::vector<Spelling>& activation_spellings();
const std::vector<Spelling>& norm_spellings();
const std::vector<Spelling>& attention_spellings();
const std::vector<Spelling>& movement_spellings();

/// x[start : start + count] along one axis of known size, by constant bounds and steps of 1; else nothing.
struct AxisSlice {
  size_t axis = 0;
  int64_t start = 0, count = 0, size = 0;
};
std::optional<AxisSlice> slice_of_one_axis(const Node& slice);

/// The constant as one value per channel (axis 1 of a result of `rank`), empty when it varies along another axis.
std::optional<Tensor> per_channel(const Value& constant, size_t rank, int64_t channels);

/// The reductions with these bindings run over the last axis alone and keep it as 1.
MatchPredicate over_last_axis(std::vector<std::string> names);

}  // namespace opfuse
