// A program that takes part in a measurement, with its arrays.
#pragma once

#include <vector>

#include "driver/compilation.hpp"
#include "opfuse/optimize.hpp"

namespace opfuse {

struct Contestant {
  Compilation compilation;
  Executable executable;
  std::vector<Tensor> inputs;
  Context context;
  std::vector<double> sample;  ///< milliseconds per run

  /// `compiled` was run to its end; `given`: one array per input of the model.
  Contestant(Compilation compiled, const std::vector<Tensor>& given, int threads);
  OptimizeSide side() const;
};

}  // namespace opfuse
