// What a schedule adds to the plain tile. A policy is a function of the plan and the tile, in a file of its own.
#pragma once

#include "cpu/emit/contraction/tile.hpp"
#include "cpu/emit/parts.hpp"

namespace opfuse::cpu {

/// pack.cpp: block `block` of what is taken for weights goes into scratch, where ContractionPlan::weights looks for it.
void pack_block(const ContractionPlan& plan, const Env& env, Value* block);

/// grouped.cpp: the groups of the vector that starts at output channel `first`.
Groups groups_from(const ContractionPlan& plan, Value* first);

/// half.cpp: the first half of `width` elements, twice.
Value* twice_lower(Kernel& k, Value* x, int width);

/// half.cpp: sums of pairs of pixels that share a vector get places of their own.
void split_pairs(const ContractionPlan& plan, const Tile& tile);

/// passes.cpp: the weights behind those at `weights`: the next block's of this pass, or the first block's of the next.
/// Behind the last pass over the last block lies the next part's.
Value* next_weights(const ContractionPlan& plan, const Tile& tile, const Address& weights);

/// What the tile's accumulators begin with: zeros, or the bias (epilogue.cpp).
void start_sums(const ContractionPlan& plan, const Tile& tile, const Env& env);

/// copies.cpp: the rows that results [first, end) read, into scratch, and where the tile's first pixel lies there.
void copy_data(const ContractionPlan& plan, const Env& env, Value* first, Value* end);
Value* copied_data(const ContractionPlan& plan, const Env& env);

/// matrix.cpp: the products of one step of channels at the taps in `env`, of the pixels in `pixels`.
void multiply_matrices(const ContractionPlan& plan, const Tile& tile, const Env& env, const Address& weights,
                       uint64_t pixels);

// How the tiles of a part are emitted: by the first of these that the schedule asks for.

void emit_overlapped(const ContractionPlan& plan, const Env& env, PartRange blocks, PartRange items);  // overlap.cpp
void emit_matrices(const ContractionPlan& plan, const Env& env, PartRange blocks, PartRange items);    // matrix.cpp
void emit_in_passes(const ContractionPlan& plan, const Env& env, PartRange blocks, PartRange items);   // passes.cpp
void emit_plain(const ContractionPlan& plan, const Env& env, PartRange blocks, PartRange items);  // contraction.cpp

struct TileKind {
  bool (*asked)(const ContractionSchedule&);
  void (*emit)(const ContractionPlan& plan, const Env& env, PartRange blocks, PartRange items);
};
inline constexpr TileKind kTileKinds[] = {
    {[](const ContractionSchedule& s) { return s.overlap != 0; }, emit_overlapped},
    {[](const ContractionSchedule& s) { return s.matrix != 0; }, emit_matrices},
    {[](const ContractionSchedule& s) { return s.k_block != 0; }, emit_in_passes},
    {[](const ContractionSchedule&) { return true; }, emit_plain},
};

}  // namespace opfuse::cpu
