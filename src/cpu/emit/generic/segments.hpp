// Long chains of functions as several short loops over a strip of vectors that stays in L2:
//
//   y = f9(f8(... f1(x)))     strip of y = f4(f3(f2(f1(x)))), then strip of y = f8(... f5(y)), then f9
//
// The code of a chain is as long as the chain, times the vectors that take turns: beyond some ten functions it no
// longer fits what a core keeps decoded. Between two loops the strip rests where the result will be.
#pragma once

#include <functional>
#include <vector>

#include "cpu/emit/stage.hpp"

namespace opfuse::cpu {

/// How many vectors of a value should take turns: those that compute in f64 need twice the registers.
int64_t vectors_in_turns(const Expr& value, int64_t registers);

struct Segments {
  std::vector<Stage> stages;  ///< all different
  std::vector<size_t> order;  ///< of stages, each as often as it comes
};

/// Stages whose results are read by the next one where they are stored; nothing where the chain is short, where more
/// than one value would go on, or where the result may lie in memory that a later one reads.
Segments segments_of(const Kernel& k, const StageEmitter& stage);

/// Makes all of `order`: one after the other, or, where some come again, in a loop that branches to each one's code.
void emit_in_order(Kernel& k, const Segments& segments, const std::function<void(size_t stage)>& emit);

}  // namespace opfuse::cpu
