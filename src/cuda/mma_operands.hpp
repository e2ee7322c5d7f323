// What tensor-core kernels ask of their operands.
#pragma once

#include "cuda/tile_view.hpp"
#include "kernel/spec.hpp"

namespace opfuse::cuda {

/// The view with that summed axis last along which most operands are copied 16 bytes at a time.
TileView mma_view(const Region& region, const std::vector<ParamLayout>& layouts);
/// The read that an operand is, possibly guarded by zero; -1: another expression.
int mma_read(const Expr& operand);
/// Whether the operand's k lies together in memory, in whole vectors of eight.
bool copies_sixteen_bytes(const Region& region, const std::vector<ParamLayout>& layouts, const TileView& view,
                          const Expr& operand);
/// Layout in which `axis` lies together for a parameter read (or stored) through `map`; nullopt when it does already.
std::optional<Layout> layout_along(const IndexMap& map, size_t rank, int axis);

}  // namespace opfuse::cuda
