// Sums of codes begin with what every result adds to them, a bias per channel: integers add up in any order, and a
// vector is copied instead of added to each result.
//
//   result = f(sum + bias[channel])   ->   result = f(sum), which begins with bias[channel]
#pragma once

#include <optional>

#include "cpu/emit/stage.hpp"

namespace opfuse::cpu {

struct SumStart {
  Stage stage;    ///< whose results take the sum as it is
  int bias = -1;  ///< number of the read that sums begin with
};
/// Nothing where results use the sum otherwise too. `channel`: the axis along which the bias differs.
std::optional<SumStart> start_of_sums(const Stage& stage, int channel);

/// The bias of the channels in `env`, a vector.
Value* load_bias(StageEmitter& stage, int bias, const Env& env);

}  // namespace opfuse::cpu
