// The schedule of attention in one kernel.
#pragma once

#include "cpu/parts_schedule.hpp"

namespace opfuse {

struct AttentionSchedule : Parts {
  int64_t rows = 1;  ///< query rows of a register tile, all of whose scores against a block of keys stay in scratch
  int64_t nv = 1, nc = 1;  ///< vectors of keys, of result columns in a register tile
  /// Keys per block: all of them where K and V of a head take half of L2 at most; else the softmax is kept up to date
  /// from block to block.
  int64_t keys = 1;
  /// Query rows that pass over the blocks together, K and V packed once for them; 0: there is one block.
  Given<0> group;
  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("rows", self.rows, Range{});
    field("nv", self.nv, Range{});
    field("nc", self.nc, Range{});
    field("keys", self.keys, Range{});
    field("group", self.group, Range{0});
    Parts::each(self, field);
  }
};

}  // namespace opfuse
