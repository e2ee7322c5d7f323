#include "quantize/predicted_time.hpp"

#include "driver/compilation.hpp"
#include "driver/predict_launches.hpp"

namespace opfuse::quantization {

double predicted_milliseconds(const Graph& graph, const SymbolValues& sizes, const RunOptions& options) {
  CompilationOptions with;
  with.dims = sizes;
  with.algorithms.threads = options.threads;
  Compilation compilation(graph, parse_target("host"), std::move(with));
  compilation.run_to(Milestone::lowered);
  double sum = 0;
  for (const LaunchPrediction& launch : predict_launches(compilation.program, compilation.target))
    sum += launch.microseconds;
  return sum / 1000;
}

}  // namespace opfuse::quantization
