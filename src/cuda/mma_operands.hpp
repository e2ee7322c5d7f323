// What tensor-core kernels ask of their operands.
#pragma once

#include "cuda/tile_view.hpp"
#include "kernel/spec.hpp"

namespace opfuse::cuda {

/// Numbers of a type that 16 bytes hold, what a copy or a row of a matrix of ldmatrix has: 8 of 16 bits, 4 of tf32.
inline int64_t chunk_of(DType factor) { return 16 / static_cast<int64_t>(byte_size(factor)); }
/// Of narrow operands (factors_of), with that summed axis last along which most operands are copied 16 bytes at a time.
TileView mma_view(const Region& region, const std::vector<ParamLayout>& layouts);
/// The read that an operand is, possibly guarded by zero; -1: another expression.
int mma_read(const Expr& operand);
/// Whether the operand's k lies together in memory, in whole 16 bytes.
bool copies_sixteen_bytes(const Region& region, const std::vector<ParamLayout>& layouts, const TileView& view,
                          const Expr& operand);
/// How many neighbours along a domain axis are 16 bytes of the widest result, where all lie together so; else 1.
int64_t stored_together(const Stage& stage, const std::vector<ParamLayout>& layouts, int axis);
/// What a schedule of tensor cores asks of shared memory, operands and results; `depth` is a stage's, in elements.
struct StagedTiles {
  int64_t stages = 0, rows = 0, columns = 0, depth = 0;
  bool copy_a = false, copy_b = false;  ///< 16 bytes at a time
  int64_t vector = 1;                   ///< results stored at a time
};
/// Why such tiles do not fit a product of narrow operands, with the number's name; nullopt: they do.
std::optional<std::string> refuse_tiles(const StagedTiles& tiles, const Region& region,
                                        const std::vector<ParamLayout>& layouts, const TargetInfo& target);
/// The same product of the numbers of 16 bits, or tf32, that its operands are, or are widened from; nullopt: none.
std::optional<TileView> factors_of(const TileView& view);
/// Whether a region is a product of narrow operands with rows and columns, and how those should lie: channels last.
bool see_narrow_product(const Region& region, const TargetInfo& target);
void wish_narrow_product(const Region& region, const TargetInfo& target, LayoutWish& wish);
/// Layout in which `axis` lies together for a parameter read (or stored) through `map`; nullopt when it does already.
std::optional<Layout> layout_along(const IndexMap& map, size_t rank, int axis);

}  // namespace opfuse::cuda
