// The parts of the tiled skeletons: batch pieces x channel-block pieces x row pieces, rows fastest, so
// that neighbouring parts share weights.
#pragma once

#include "cpu/emit/stage.hpp"

namespace opfuse::cpu {

struct PartRange {
  Value* begin;
  Value* end;
};

/// Piece `index` of `pieces` of [0, count).
PartRange cut_range(Kernel& k, const Dim& count, Value* index, const Dim& pieces);

/// Emits body(env, blocks, rows) for this part; batch axes are set in env. Sets Kernel::parts from the
/// knobs parts_o, parts_p and parts_batch.
using PartBody = std::function<void(const Env&, PartRange blocks, PartRange rows)>;
void emit_tiled_parts(Kernel& k, const Env& start, const std::vector<int>& batch_axes, const Dim& blocks,
                      const Dim& rows, const PartBody& body);

}  // namespace opfuse::cpu
