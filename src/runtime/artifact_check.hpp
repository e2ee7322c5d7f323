// What the header of an .opf must be before anything of it runs.
#pragma once

#include "base/hash.hpp"
#include "runtime/artifact.hpp"

namespace opfuse {

/// Hash of all that the machine code relies on: where kernels start, their arguments, the places and sizes of buffers,
/// parts, scratch, the order of symbols, types of inputs and outputs, the CPU features, the constants. A file keeps it
/// with the code: whoever may change it may write machine code as well, and there trust ends (SECURITY.md).
Hash128 contract_of(const Artifact& artifact, const std::string& constants_hash, int format);

/// Indices, sizes and symbols agree with each other and with the blobs. E::bad_file.
void check_artifact(const Artifact& artifact);

/// With the sizes of a run: every buffer lies in the memory it is a part of. `arena` and the bytes of the bound inputs
/// and outputs are what there is. Sizes that the run has yet to find are left out. E::bad_file.
inline constexpr int64_t kLater = -1;  ///< bytes of memory that is made when its size is found
struct RunMemory {
  int64_t arena = 0, constants = 0;
  std::vector<int64_t> inputs, outputs;
  std::vector<int64_t> later_arenas;  ///< by level from 1
};
void check_ranges(const ArtifactProgram& program, const SymbolValues& sizes, const RunMemory& memory);

}  // namespace opfuse
