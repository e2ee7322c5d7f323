// Lanes of channels stored into dense maps, where each lane is a line of its own: neighbouring pixels are turned in
// registers first.
#pragma once

#include "cpu/emit/stage.hpp"

namespace opfuse::cpu {

/// How many points from `first` on were stored together; 0: each by itself. `value_of`: the first output's, at a point.
size_t store_turned(StageEmitter& stage, const std::vector<StageEmitter::Point>& points, size_t first,
                    const std::function<Value*(const StageEmitter::Point&)>& value_of);

}  // namespace opfuse::cpu
