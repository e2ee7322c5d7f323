// The numbers that schedules of all CPU skeletons share.
#pragma once

#include "kernel/schedule_fields.hpp"

namespace opfuse {

/// Of every skeleton: what an expression's functions are computed by.
struct Activations {
  Given<0> activation_tables;  ///< tables of polynomials (cpu/activation_form.hpp)
  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("activation_tables", self.activation_tables, kFlag);
  }
};

/// How the work of a launch is cut (cpu/emit/parts.hpp).
struct Parts : Activations {
  Given<1> parts_o, parts_p;   ///< pieces of output channels, of rows
  Given<1 << 20> parts_batch;  ///< pieces of the batch, at most one for each image
  Given<0> rows_first;         ///< neighbouring parts are channels of the same rows
  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("parts_o", self.parts_o, Range{});
    field("parts_p", self.parts_p, Range{});
    field("parts_batch", self.parts_batch, Range{});
    field("rows_first", self.rows_first, kFlag);
    Activations::each(self, field);
  }
};

}  // namespace opfuse
