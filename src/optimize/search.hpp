// The search behind opfuse::optimize, on graphs: what the command line and the API share.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "driver/compilation.hpp"
#include "opfuse/optimize.hpp"
#include "proof/compare.hpp"

namespace opfuse {

struct SearchRequest {
  std::vector<Tensor> inputs;        ///< one per input of the model
  std::vector<Tensor> other_inputs;  ///< to measure what another input changes; may be empty
  uint64_t seed = 0;
  double warmup_seconds = 0.2, seconds = 2;
  bool prove = true;
  std::function<bool()> stop;
};

struct SearchOutcome {
  Optimized result;
  Compilation compilation;  ///< of the chosen candidate; its artifact is the executable's
  std::optional<Comparison> proof;
};

/// `options.dims` has a size for every open dimension of the model.
SearchOutcome search(const Graph& model, const TargetInfo& target, const CompilationOptions& options,
                     const SearchRequest& request);

}  // namespace opfuse
