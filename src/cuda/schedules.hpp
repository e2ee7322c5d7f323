// The schedules of the CUDA generator's skeletons.
#pragma once

#include "kernel/schedule_fields.hpp"

namespace opfuse::cuda {

/// Contractions on tensor cores.
struct MmaSchedule {
  int64_t mma_m = 64, mma_n = 64, mma_k = 64;  ///< of a block's tile: rows, columns, depth of a step
  int64_t warp = 32;                           ///< rows and columns of a warp's part of it
  int64_t stages = 3;                          ///< of tiles in shared memory: one is multiplied, the others are filled
  int64_t copy_a = 0, copy_b = 0;              ///< operands are copied 16 bytes at a time, past the registers
  int64_t vector = 1;                          ///< results that a thread stores together
  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("mma_m", self.mma_m, Range{64, 128});
    field("mma_n", self.mma_n, Range{64, 128});
    field("mma_k", self.mma_k, Range{16, 128});
    field("warp", self.warp, Range{32, 64});
    field("stages", self.stages, Range{2, 8});
    field("copy_a", self.copy_a, kFlag);
    field("copy_b", self.copy_b, kFlag);
    field("vector", self.vector, Range{1, 8});
  }
};

/// Contractions on tensor cores by groups of four warps, 64 rows each; steps are 128 bytes deep.
struct WgmmaSchedule {
  int64_t mma_m = 128, mma_n = 128;  ///< of a block's tile: rows, columns
  int64_t stages = 3;                ///< of tiles in shared memory
  int64_t copy_a = 0, copy_b = 0;    ///< operands are copied 16 bytes at a time, past the registers
  int64_t vector = 1;                ///< results that a thread stores together
  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("mma_m", self.mma_m, Range{64, 256});
    field("mma_n", self.mma_n, Range{64, 128});
    field("stages", self.stages, Range{2, 8});
    field("copy_a", self.copy_a, kFlag);
    field("copy_b", self.copy_b, kFlag);
    field("vector", self.vector, Range{1, 8});
  }
};

/// The same by blocks that stay: some warps copy, with the copy engine where tensor maps describe the operands, groups
/// of four warps multiply 64 rows each.
struct TmaSchedule {
  int64_t mma_m = 128, mma_n = 128;            ///< of a tile: rows, columns
  int64_t stages = 4;                          ///< of tiles in shared memory
  int64_t blocks = 132;                        ///< that take one tile after the other
  int64_t map_a = 0, map_b = 0, map_y = 0;     ///< boxes of the operands and of the result are copied
  int64_t copy_a = 0, copy_b = 0, vector = 1;  ///< what is not: 16 bytes at a time; results that a thread has together
  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("mma_m", self.mma_m, Range{64, 128});
    field("mma_n", self.mma_n, Range{64, 256});
    field("stages", self.stages, Range{2, 8});
    field("blocks", self.blocks, Range{1, 4096});
    field("map_a", self.map_a, kFlag);
    field("map_b", self.map_b, kFlag);
    field("map_y", self.map_y, kFlag);
    field("copy_a", self.copy_a, kFlag);
    field("copy_b", self.copy_b, kFlag);
    field("vector", self.vector, Range{1, 8});
  }
};

/// Contractions in fp32 arithmetic.
struct TilesSchedule {
  int64_t tile_m = 64, tile_n = 64, tile_k = 16;  ///< of a block: rows, columns, depth of a step
  int64_t per_m = 4, per_n = 4;                   ///< rows and columns of a thread
  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("tile_m", self.tile_m, Range{});
    field("tile_n", self.tile_n, Range{});
    field("tile_k", self.tile_k, Range{});
    field("per_m", self.per_m, Range{});
    field("per_n", self.per_n, Range{});
  }
};

/// Attention on tensor cores; a warp has 16 queries.
struct AttentionMmaSchedule {
  int64_t warps = 4;                           ///< of a block
  int64_t copy_q = 0, copy_k = 0, copy_v = 0;  ///< operands are copied 16 bytes at a time, past the registers
  int64_t vector = 1;                          ///< results that a thread stores together
  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("warps", self.warps, Range{1, 8});
    field("copy_q", self.copy_q, kFlag);
    field("copy_k", self.copy_k, kFlag);
    field("copy_v", self.copy_v, kFlag);
    field("vector", self.vector, Range{1, 8});
  }
};

/// Attention on Hopper's tensor cores: groups of four warps have 64 queries each, a warp more copies.
struct AttentionTmaSchedule {
  int64_t groups = 2;  ///< of a block
  int64_t keys = 64;   ///< of a step
  int64_t stages = 2;  ///< of keys and values in shared memory
  int64_t vector = 1;  ///< results that a thread stores together
  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("groups", self.groups, Range{1, 2});
    field("keys", self.keys, Range{64, 128});
    field("stages", self.stages, Range{2, 8});
    field("vector", self.vector, Range{1, 8});
  }
};

/// Attention in fp32 arithmetic.
struct AttentionSchedule {
  int64_t rows = 64, keys = 64;  ///< of a block's queries, of the keys of a step
  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("rows", self.rows, Range{16, 64});
    field("keys", self.keys, Range{16, 64});
  }
};

/// Depthwise convolutions.
struct DepthwiseSchedule {
  int64_t columns = 4;  ///< neighbouring results of a thread, eight channels of each
  int64_t block = 128;  ///< threads
  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("columns", self.columns, Range{1, 16});
    field("block", self.block, Range{32, 1024});
  }
};

/// A depthwise window and the rows of channels behind it.
struct WindowRowsSchedule {
  int64_t eights = 0;  ///< 16 bits, channels last: a thread has eight channels of `columns` pixels
  int64_t columns = 1;
  int64_t pixels = 32;  ///< of a block
  int64_t vector = 1;   ///< results that a thread stores together
  int64_t block = 256;  ///< threads
  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("eights", self.eights, kFlag);
    field("columns", self.columns, Range{1, 16});
    field("pixels", self.pixels, Range{1, 1024});
    field("vector", self.vector, Range{1, 8});
    field("block", self.block, Range{32, 1024});
  }
};

/// Maps, rows and windows.
struct RowsSchedule {
  Given<1> team;        ///< threads of a row
  Given<1> vector;      ///< neighbours that a thread takes together
  Given<0> per_thread;  ///< elements of a row that a thread keeps in registers; 0: it keeps none
  Given<0> held;        ///< elements of a row that shared memory holds; 0: none
  Given<0> across;      ///< a block has 32 neighbouring rows: a warp has the same share of each
  int64_t block = 256;  ///< threads
  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("team", self.team, Range{1, 1024});
    field("vector", self.vector, Range{1, 8});
    field("per_thread", self.per_thread, Range{0, 96});
    field("held", self.held, Range{0});
    field("across", self.across, kFlag);
    field("block", self.block, Range{32, 1024});
  }
};

/// Nothing to choose.
struct ScatterSchedule {
  template <class Self, class F>
  static void each(Self&, F&&) {}
};

}  // namespace opfuse::cuda
