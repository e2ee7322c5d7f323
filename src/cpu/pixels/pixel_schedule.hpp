// The schedule of a convolution with pixels in the lanes.
#pragma once

#include "cpu/parts_schedule.hpp"

namespace opfuse {

struct PixelSchedule : Parts {
  int64_t pixels = 1;    ///< vectors of a register tile
  int64_t tile_o = 1;    ///< outputs of a register tile
  int64_t bands = 1;     ///< of rows that are packed together
  int64_t pack_all = 1;  ///< the channels of all groups; 0: group by group
  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("pixels", self.pixels, Range{});
    field("tile_o", self.tile_o, Range{});
    field("bands", self.bands, Range{});
    field("pack_all", self.pack_all, kFlag);
    Parts::each(self, field);
  }
};

}  // namespace opfuse
