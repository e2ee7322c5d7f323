// The schedule of a register-tiled contraction.
#pragma once

#include "cpu/parts_schedule.hpp"

namespace opfuse {

struct ContractionSchedule : Parts {
  int64_t nv = 1;          ///< vectors of output channels in a register tile, and in a block of weights
  int64_t tile_w = 1;      ///< pixels of a register tile
  Given<1> tile_h;         ///< rows that share it
  int64_t step = 1;        ///< input channels per pass over the taps
  Given<0> grouped;        ///< 1: lanes of several groups, permuted; 2: blended, or channels that straddle blocks
  Given<0> half;           ///< two pixels share the last vector of channels
  Given<1 << 30> chunk;    ///< rows or tiles over which all blocks of weights pass before the next ones
  Given<0> k_block;        ///< input channels of a pass, between which accumulators rest in scratch; 0: all
  Given<0> prefetch;       ///< lines of the next weights that a row or tile fetches
  Given<0> fetch_data;     ///< ahead: 1: of the next channels, into L1; 2: also of the next tile, into L2
  Given<0> fetch_outputs;  ///< ahead, into L1
  Given<0> overlap;        ///< the epilogue of a tile runs between the products of the next
  Given<0> pack;           ///< parts pack the weights they use
  Given<0> matrix;         ///< products of whole matrices, whose sums rest in registers of their own
  Given<0> decode;         ///< weights lie as codes: Decode (decoded_weights.hpp)
  Given<0> digits;         ///< a row of data is multiplied as bytes with codes of weights (digits.hpp)
  Given<0> paired;         ///< weights lie in pairs that fit i16 (tensor/paired_codes.hpp)
  Given<0> copies;         ///< of the rows a chunk reads, borders included (data_copies.hpp)

  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("nv", self.nv, Range{});
    field("tile_w", self.tile_w, Range{});
    field("tile_h", self.tile_h, Range{});
    field("step", self.step, Range{});
    field("grouped", self.grouped, Range{0, 2});
    field("half", self.half, kFlag);
    field("chunk", self.chunk, Range{});
    field("k_block", self.k_block, Range{});
    field("prefetch", self.prefetch, Range{0});
    field("fetch_data", self.fetch_data, Range{0, 2});
    field("fetch_outputs", self.fetch_outputs, kFlag);
    field("overlap", self.overlap, kFlag);
    field("pack", self.pack, kFlag);
    field("matrix", self.matrix, kFlag);
    field("decode", self.decode, Range{0, 3});
    field("digits", self.digits, kFlag);
    field("paired", self.paired, kFlag);
    field("copies", self.copies, kFlag);
    Parts::each(self, field);
  }
};

}  // namespace opfuse
