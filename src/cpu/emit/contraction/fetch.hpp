// What a tile fetches before it is needed.
#pragma once

#include "cpu/emit/contraction/tile.hpp"

namespace opfuse::cpu {

/// The tile's share of the weights that come next: of those behind the `channels` channels at `weights` (one address
/// for each sum), into L2.
void fetch_weights(const ContractionPlan& plan, const Tile& tile, const std::vector<Address>& weights,
                   int64_t channels);
/// The same of all taps from number `index` on, which the tile leaves out.
void fetch_weights_of_taps(const ContractionPlan& plan, const Tile& tile, size_t index, const Env& env,
                           int64_t channels);
/// The pixels' lines of the next channel block; `data`: where this one lies.
void fetch_data(const ContractionPlan& plan, const Tile& tile, const Env& env, const Address& data);
/// Lines of the results and of the operands that the epilogue reads at the same place.
void fetch_epilogue(const ContractionPlan& plan, const Tile& tile, const Env& env);

}  // namespace opfuse::cpu
