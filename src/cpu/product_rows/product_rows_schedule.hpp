// The schedule of a product and the reduction of its rows in one kernel: the product's numbers, and the rows of a band.
#pragma once

#include "cpu/contraction/contraction_schedule.hpp"

namespace opfuse {

struct ProductRowsSchedule : ContractionSchedule {
  int64_t band = 1;  ///< rows of the product in scratch at a time

  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("band", self.band, Range{});
    ContractionSchedule::each(self, field);
  }
};

}  // namespace opfuse
