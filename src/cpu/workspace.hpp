// Scratch of kernels of several stages: what their bands and blocks may take. What one stage copies or packs for itself
// is not bounded.
#pragma once

#include <optional>
#include <string>

#include "kernel/spec.hpp"

namespace opfuse {

/// Bytes for what lies between stages: a share of L2, and no more than LaunchCosts::workspace.
double scratch_room(double share, const TargetInfo& target);

/// Whether a kernel may have so many bytes of scratch.
bool within_workspace(int64_t bytes, const TargetInfo& target);

/// Why the stages cannot be one kernel within the workspace, their operands lying as it wishes; nullopt: they can.
std::optional<std::string> exceeds_workspace(const Region& region, const TargetInfo& target);

}  // namespace opfuse
