// The arena over a run: which buffer lies where, from which launch to which.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/artifact.hpp"

namespace opfuse::report {

struct ArenaBlock {
  std::string name;
  int64_t offset = 0, bytes = 0;
  int first = 0, last = 0;  ///< launches
};

struct ArenaUse {
  int64_t bytes = 0;               ///< the whole arena
  std::vector<ArenaBlock> blocks;  ///< views are within others; blocks of equal place and time are one
  std::vector<int64_t> live;       ///< by launch: bytes that a buffer in use covers
};

ArenaUse arena_use(const ArtifactProgram& program, const SymbolValues& sizes);

}  // namespace opfuse::report
