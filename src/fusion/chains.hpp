// Chains: two groups that become one launch, the map between them never more than a few rows.
//
//     x -- A: convolution -- t -- B: depthwise -- y        B alone reads t
//     x -- [A, B] -- y
//
// The kernel computes some channels of t, a few rows at a time, and B's rows from them (codegen/chain_view.hpp). Gated
// MLPs (fusion/gates.hpp) join as well: one product of two sums, whose epilogue combines them. The plan, its groups and
// their counts do not change; the launch is named after both.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/decline.hpp"
#include "ir/graph.hpp"

namespace opfuse {

/// A pair that was looked at: a chain, or one of means.hpp and channel_gates.hpp.
struct ChainVerdict {
  std::string first, second;         ///< names of the groups
  std::vector<std::string> sources;  ///< of both
  int64_t bytes = 0;                 ///< of the map between them, open dimensions as 1
  std::string between;               ///< its name
  bool gate = false;                 ///< a gated MLP, not two convolutions
  std::optional<Decline> refused;    ///< why they stay apart
  std::string kind = "chain";        ///< or "means", "factor"
};

/// Why the joined node should not be one kernel; empty: it should.
using ChainAdvice = std::function<std::optional<Decline>(const Node& joined)>;

/// Joins the pairs of a fused graph that `advice` has nothing against.
std::vector<ChainVerdict> join_chains(Graph& fused, const ChainAdvice& advice);

/// A line per kind: how many chains there are and what they save; nothing where no pair was joined.
std::vector<std::string> chain_notes(const std::vector<ChainVerdict>& verdicts);

}  // namespace opfuse
