// How the work of a chain is cut into parts, and what that costs.
#pragma once

#include "cpu/window/chain_view.hpp"
#include "kernel/fastest.hpp"
#include "target/target.hpp"

namespace opfuse {

struct ChainCut {
  int64_t parts_o = 1, parts_p = 1;
  double recompute = 1;  ///< rows of the first stage computed, over those there are: parts share none
  double imbalance = 1;  ///< of two workers: the longer one's time over the mean
};

/// The `most` fastest. `nv`: vectors of a block of channels.
std::vector<Ranked<ChainCut>> chain_cuts(const Region& region, const ChainView& view, int64_t nv,
                                         const TargetInfo& target, size_t most);
/// The first of them.
ChainCut cut_chain(const Region& region, const ChainView& view, int64_t nv, const TargetInfo& target);

}  // namespace opfuse
