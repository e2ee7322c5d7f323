// Maps into blocks of few channels (the colours of an image) whose operands are planes.
#pragma once

#include <optional>
#include <vector>

#include "cpu/emit/stage.hpp"

namespace opfuse::cpu {

struct Interleaved {
  int channel = -1, across = -1;  ///< domain axes: of a block's elements, of the operands' neighbours
  int64_t block = 1;              ///< channels that lie together in the result
};
/// Nothing where results or operands lie otherwise. `channel`: the axis along which results lie together, in blocks of
/// `block`.
std::optional<Interleaved> find_interleaved(const StageEmitter& stage, int channel, int64_t block);

/// `order`: domain axes from the outermost in memory; `work` decides the number of parts.
void emit_interleaved(Kernel& k, StageEmitter& stage, const Interleaved& form, const std::vector<int>& order,
                      const Dim& work);

}  // namespace opfuse::cpu
