// Linears of one value become one product.
//
//         .-- Linear a -- q                                    .-- slice -- q
//     x --+-- Linear b -- k        x -- Linear [a | b | c] -- -+-- slice -- k
//         '-- Linear c -- v                                    '-- slice -- v
//
// The weights lie beside each other in one constant, and each reader reads its columns of the one result where they
// are: attention takes its heads from there, others a view. Each result is the same sum of the same products. The plan,
// its groups and their counts do not change; the product has the labels of the groups it stands for.
#pragma once

#include <string>
#include <vector>

#include "fusion/plan.hpp"

namespace opfuse {

/// What became of Linears that read one value.
struct SiblingLinears {
  std::string source;                ///< the value they read
  std::vector<std::string> results;  ///< of the Linears, in topological order
  std::optional<Decline> decline;    ///< why they are not one product; nothing: they are
};

/// Works on a fused graph, before movements join attention. Linears with constant weights and nothing behind them but
/// a bias are merged where every reader reads its columns in place and no more memory is needed.
std::vector<SiblingLinears> merge_siblings(Graph& fused, const Legality& legal);

/// One line on all that were merged, and one per set that was not.
std::vector<std::string> lines_of(const std::vector<SiblingLinears>& all);

}  // namespace opfuse
