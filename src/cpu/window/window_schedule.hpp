// The schedule of a register-tiled window.
#pragma once

#include "cpu/parts_schedule.hpp"

namespace opfuse {

struct WindowSchedule : Parts {
  int64_t tile_w = 1;  ///< pixels of a register tile
  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("tile_w", self.tile_w, Range{});
    Parts::each(self, field);
  }
};

}  // namespace opfuse
