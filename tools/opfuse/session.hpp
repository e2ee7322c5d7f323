// A compiled model with its inputs bound: what run, bench and profile work with.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "inputs.hpp"
#include "opfuse/device_buffer.hpp"
#include "opfuse/runtime.hpp"
#include "profile/turns.hpp"

namespace opfuse::cli {

ArrayView view_of(const Tensor& tensor);
Tensor tensor_of(const ArrayView& view);  ///< a copy

/// A context with inputs and outputs bound to memory of its own.
class Session {
 public:
  /// `resident`: in the memory of the GPU that the executable is for.
  Session(const Executable& executable, const ModelInputs& inputs, ContextOptions options, bool resident = false);
  Context& context() { return context_; }
  /// Copies of the outputs of the last run, in model order.
  std::vector<Tensor> outputs() const;
  const std::vector<std::string>& output_names() const { return output_names_; }

 private:
  std::vector<Tensor> inputs_, outputs_;
  std::vector<std::string> output_names_;
  std::vector<DeviceBuffer> resident_;    ///< of outputs
  std::vector<size_t> resident_outputs_;  ///< which ones
  std::vector<DeviceBuffer> resident_inputs_;
  Context context_;
};

using MeasureSettings = TurnSettings;

/// measure_in_turns that ends early after an interrupt.
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
