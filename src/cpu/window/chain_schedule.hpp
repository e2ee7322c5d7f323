// The schedule of a convolution and a window in one kernel: the first stage's numbers, and the second's.
#pragma once

#include "cpu/contraction/contraction_schedule.hpp"

namespace opfuse {

struct ChainSchedule : ContractionSchedule {
  int64_t window_w = 1;  ///< pixels of the window's register tile
  int64_t band = 1;      ///< rows of the window per step

  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("window_w", self.window_w, Range{});
    field("band", self.band, Range{});
    ContractionSchedule::each(self, field);
  }
};

}  // namespace opfuse
