// The schedule of a Winograd convolution F(h x w, 3x3).
#pragma once

#include "cpu/parts_schedule.hpp"

namespace opfuse {

struct WinogradSchedule : Parts {
  int64_t winograd_h = 4, winograd_w = 4;  ///< results of a tile of the image
  int64_t nv = 1;                          ///< vectors of output channels in a block of weights
  int64_t tile_w = 1;                      ///< tiles of a register tile
  int64_t chunk = 1;                       ///< tiles whose transformed data scratch holds
  int64_t prefetch = 0;                    ///< lines of the next weights that a register tile fetches
  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("winograd_h", self.winograd_h, Range{2, 4});
    field("winograd_w", self.winograd_w, Range{2, 4});
    field("nv", self.nv, Range{});
    field("tile_w", self.tile_w, Range{});
    field("chunk", self.chunk, Range{});
    field("prefetch", self.prefetch, Range{0});
    Parts::each(self, field);
  }
};

}  // namespace opfuse
