// What an artifact says of devices beside the host, compared with what there is; and what these checks share with those
// of all other launches.
#pragma once

#include <set>

#include "runtime/artifact_check.hpp"

namespace opfuse {

/// E::bad_file: "the header's launches are inconsistent".
void consistent(bool ok, const char* what);
/// Symbols that the inputs give.
std::set<std::string> bound_symbols(const Artifact& a);
/// And those that launches of the program give.
std::set<std::string> known_symbols(const Artifact& a, const ArtifactProgram& program);
/// Bytes of the memory that a buffer is a part of.
int64_t whole_of(const ArtifactBuffer& b, const RunMemory& memory);

/// Operands and results are there, each with its type and its place in the host's memory.
void check_placed(const Artifact& a, const ArtifactProgram& program, const ArtifactLaunch& l);
/// The same of a routine.
void check_routine(const Artifact& a, const ArtifactProgram& program, const ArtifactLaunch& l);
/// What a launch of a device moves, or a routine reads and gives, lies in the memory of its buffers; views have the
/// strides of what they are parts of.
void check_placed_ranges(const ArtifactProgram& program, const ArtifactLaunch& l, const SymbolValues& sizes,
                         const RunMemory& memory);
void check_gpu_pieces(const ArtifactDevice& device);

}  // namespace opfuse
