// A model to the fastest program that opfuse finds for it: proven, and measured against the same model without fusion.
//
//   opfuse::Optimized result = opfuse::optimize(model, opfuse::Target::host(), {.compile = {.dims = {{"batch", 1}}}});
//   if (result.ok()) result.executable.save("resnet.opf");
//   std::cout << result.text();
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "opfuse/opfuse.hpp"

namespace opfuse {

struct OptimizeOptions {
  CompileOptions compile{};                   ///< what all candidates share; `dims` needs every open dimension
  std::map<std::string, ArrayView> inputs{};  ///< to prove and measure with; drawn ones for the rest
  uint64_t seed = 0;                          ///< of drawn inputs
  double seconds = 2;                         ///< of counted runs of each contestant
  bool prove = true;                          ///< false: leave out the proof; the result says so
  std::function<bool()> stop{};               ///< asked between steps and runs; true ends the search with what there is
};

/// A way to compile the model that was tried.
struct OptimizeCandidate {
  std::string name;     ///< "as predicted"
  std::string flags;    ///< of `opfuse compile` for this program
  std::string skipped;  ///< why it was not measured: the same program as another, an error; empty: it was
  size_t launches = 0;
  double ms = 0;          ///< median of its runs, in turns with all others
  int64_t arena = 0;      ///< bytes of intermediate results
  int64_t constants = 0;  ///< bytes of packed weights
};

/// An estimate and its 95 % interval.
struct Ratio {
  double low = 0, estimate = 0, high = 0;
};

/// How fast and how large a program is.
struct OptimizeSide {
  size_t launches = 0;
  double ms = 0;      ///< median
  double bytes = 0;   ///< that launches read and write
  int64_t arena = 0;  ///< bytes of intermediate results
  int64_t constants = 0;
  int64_t memory() const { return arena + constants; }
};

struct Optimized {
  Executable executable;  ///< of the chosen candidate
  std::vector<OptimizeCandidate> candidates;
  size_t chosen = 0;
  OptimizeSide fused, unfused;        ///< measured again, in turns, after the choice
  Ratio time;                         ///< fused / unfused
  size_t groups = 0;                  ///< that were proven; 0: the proof was left out
  double worst_of_bound = 0;          ///< largest error of a group, of its own bound
  double output_error = 0;            ///< fused against the interpreter, of the output's largest value
  std::vector<std::string> failures;  ///< groups and outputs whose proof failed
  std::map<std::string, int64_t> dims;
  std::string target;
  int threads = 0;
  bool interrupted = false;

  bool slower() const { return time.low > 1; }  ///< beyond noise
  bool larger() const { return fused.memory() > unfused.memory(); }
  bool ok() const { return failures.empty() && !slower() && !larger(); }
  OPFUSE_API std::string text() const;  ///< the summary that `opfuse optimize` prints
};

/// Compiles the model in several ways (algorithms as predicted or measured, groups joined or apart, batches image by
/// image or at once), times them in turns, proves the fastest that needs no more memory than the model without fusion,
/// and measures it against that. Throws what `compile` throws, and missing_dimension where a size is open.
OPFUSE_API Optimized optimize(const Model& model, const Target& target, const OptimizeOptions& options = {});

}  // namespace opfuse
