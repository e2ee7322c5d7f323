// The ways to compile a model that are tried against each other.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "driver/compilation.hpp"

namespace opfuse {

struct CandidateRow {
  const char* name;
  const char* flags;  ///< of `opfuse compile`
  void (*set)(CompilationOptions& options);
};

/// The first is what `compile` does by itself.
std::span<const CandidateRow> candidate_rows();

/// Two artifacts with equal fingerprints run the same kernels over the same memory.
std::string fingerprint(const Artifact& artifact);

}  // namespace opfuse
