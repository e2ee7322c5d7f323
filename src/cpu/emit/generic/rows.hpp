// Rows of a stage that reduces them, for kernels that have more than that stage.
#pragma once

#include "cpu/emit/parts.hpp"
#include "cpu/emit/stage.hpp"

namespace opfuse::cpu {

/// Rows [begin, end) along domain axis `axis` of stage `stage`, which its reductions depend on; the axes before it
/// stand as in `at`. Lanes run along what is behind it.
struct RowBand {
  int stage = 0;
  int axis = 0;
  PartRange rows;
};
void emit_rows(Kernel& k, const RowBand& band, const StageEmitter::Locals& locals, const Env& at);

}  // namespace opfuse::cpu
