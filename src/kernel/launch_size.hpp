// A dimension that launches give their kernel: the last of a spec's symbols may have this name, which no model's has.
// Its value is an i64 behind the pointers of the parameters, not in the list of symbols, so a launch of any size has
// one more operand and runs like all others.
#pragma once

namespace opfuse {

inline constexpr const char* kLaunchSize = "launch size";

}  // namespace opfuse
