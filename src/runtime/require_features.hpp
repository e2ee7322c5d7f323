// Code for another CPU is refused by name, before it ends the process with an illegal instruction.
#pragma once

#include "runtime/artifact.hpp"

namespace opfuse {

/// E::unsupported_cpu naming the target and the features that this machine lacks.
void require_features(const Artifact& artifact);

}  // namespace opfuse
