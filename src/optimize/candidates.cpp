// A row per candidate; what a row adds to the caller's options is what its flags say. Rows that change nothing for a
// model (no convolution, no batch) give equal programs, which are measured once.
#include "optimize/candidates.hpp"

#include <fmt/core.h>

#include "base/hash.hpp"

namespace opfuse {
namespace {

constexpr CandidateRow kRows[] = {
    {"as predicted", "", [](CompilationOptions&) {}},
    {"measured", "--measure", [](CompilationOptions& o) { o.algorithms.measure = true; }},
    {"direct convolutions", "--exact", [](CompilationOptions& o) { o.algorithms.exact = true; }},
    {"batch at once", "--no-pass loop-over-images",
     [](CompilationOptions& o) { o.no_pass.emplace_back("loop-over-images"); }},
    {"groups apart", "--no-chains",
     [](CompilationOptions& o) {
       o.no_pass.insert(o.no_pass.end(), passes_of_chains().begin(), passes_of_chains().end());
     }},
    {"patterns only", "--no-rules", [](CompilationOptions& o) { o.plan.rules = false; }},
};

}  // namespace

std::span<const CandidateRow> candidate_rows() { return kRows; }

std::string fingerprint(const Artifact& a) {
  std::string text =
      fmt::format("{} {} {}", hash_bytes(a.code.data(), a.code.size()).hex(), a.constants.size(), a.arena_bytes.text());
  for (const ArtifactLaunch& l : a.launches) {
    text += fmt::format("\n{} {} {}", l.symbol, l.code_offset, l.parts.text());
    for (int b : l.buffers) text += b < 0 ? " -" : " " + a.buffers[static_cast<size_t>(b)].offset.text();
  }
  for (const ArtifactBody& b : a.bodies) text += fmt::format("\n{} {} {}", b.first, b.launches, b.times.text());
  return text;
}

}  // namespace opfuse
