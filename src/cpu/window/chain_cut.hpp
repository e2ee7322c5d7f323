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

/// Rows of the first stage in scratch, for a band of so many rows of the window.
int64_t held_rows(const Region& region, const ChainView& view, int64_t band);
/// Bytes of a part's scratch: those rows of a block of `nv` vectors, and the sums of means.
int64_t chain_scratch(const Region& region, const ChainView& view, int64_t nv, int64_t band, const TargetInfo& target);

}  // namespace opfuse
