// A compiled model with its inputs bound: what run, bench and profile work with.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "inputs.hpp"
#include "opfuse/runtime.hpp"

namespace opfuse::cli {

ArrayView view_of(const Tensor& tensor);
Tensor tensor_of(const ArrayView& view);  ///< a copy

/// A context with inputs and outputs bound to memory of its own.
class Session {
 public:
  Session(const Executable& executable, const ModelInputs& inputs, ContextOptions options);
  Context& context() { return context_; }
  /// Copies of the outputs of the last run, in model order.
  std::vector<Tensor> outputs() const;
  const std::vector<std::string>& output_names() const { return output_names_; }

 private:
  std::vector<Tensor> inputs_, outputs_;
  std::vector<std::string> output_names_;
  Context context_;
};

struct MeasureSettings {
  double warmup_seconds = 0.2, duration_seconds = 3;
  int iterations = 10;  ///< at least
};

/// Milliseconds per run of each context, in turns (A B A B ...), until the duration is over for every one and each ran
/// the least number of times; ends early after an interrupt, with what there is. `after_run(i)` follows every counted
/// run of contexts[i].
std::vector<std::vector<double>> measure(const std::vector<Context*>& contexts, const MeasureSettings& settings,
                                         const std::function<void(size_t)>& after_run = {});

/// Runs per second of all sessions together, each in a thread of its own.
double measure_throughput(std::vector<Session>& sessions, const MeasureSettings& settings);

struct WorkTotal {
  double flops = 0, bytes = 0, weight_bytes = 0;
  size_t launches = 0;
};
WorkTotal total_work(const Context& context);

}  // namespace opfuse::cli
