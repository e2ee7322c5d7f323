// Launches of devices beside the host, as an artifact has them.
#pragma once

#include "ir/graph.hpp"
#include "program/program.hpp"
#include "runtime/artifact.hpp"

namespace opfuse {

/// What the launch of a placed node is. `device`: its number among the artifact's; `piece`: its text.
PlacedLaunch placed_launch(const Program& program, const Launch& launch, const Node& placed, int device,
                           std::string piece);

}  // namespace opfuse
