// Chains: two groups that become one launch, the map between them never more than a few rows.
//
//     x -- A: convolution -- t -- B: depthwise -- y        B alone reads t
//     x -- [A, B] -- y
//
// The kernel computes some channels of t, a few rows at a time, and B's rows from them (cpu/window/chain_view.hpp).
// Gated MLPs (shape/gates.hpp) join as well: one product of two sums, whose epilogue combines them. The plan, its
// groups and their counts do not change; the launch is named after both.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/decline.hpp"
#include "ir/graph.hpp"

namespace opfuse {

/// A pair of groups that was looked at.
struct ChainVerdict {
  /// "chain" (a convolution and a depthwise one), "gate" (gates.hpp), "means" (means.hpp), "factor"
  /// (channel_factors.hpp)
  std::string kind;
  std::string first, second;         ///< names of the groups
  std::vector<std::string> sources;  ///< of both
  int64_t bytes = 0;                 ///< of the map between them, open dimensions as 1
  std::string between;               ///< its name
  std::optional<Decline> refused;    ///< why they stay apart
};

/// A verdict without a refusal; the result of `first` is what lies between.
ChainVerdict verdict_of(std::string kind, const Node& first, const Node& second);

/// Why `between` must be stored although a pair is joined over it: a graph output, or other readers.
std::optional<Decline> read_elsewhere(const Graph& graph, const Value& between);

/// Why the joined node should not be one kernel; empty: it should.
using ChainAdvice = std::function<std::optional<Decline>(const Node& joined)>;

/// Joins the pairs of a fused graph that `advice` has nothing against.
std::vector<ChainVerdict> join_chains(Graph& fused, const ChainAdvice& advice);

/// "one launch, 1.61 MB between them stay in caches", or why there are two.
std::string sentence_of(const ChainVerdict& verdict);
/// A line per kind: how many pairs were joined and what that saves; nothing where none was.
std::vector<std::string> chain_notes(const std::vector<ChainVerdict>& verdicts);

}  // namespace opfuse
