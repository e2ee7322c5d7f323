// A graph compiled for this machine, some of whose values can be read after each run.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/step_progress.hpp"
#include "ir/graph.hpp"
#include "opfuse/runtime.hpp"

namespace opfuse::quantization {

struct RunOptions {
  int threads = 0;
  bool cache = true;  ///< of kernels
  StepProgress progress;
};

class ObservedModel {
 public:
  /// `values`: names of values of the graph. Outputs of the graph can be read too.
  ObservedModel(const Graph& graph, const std::vector<std::string>& values, RunOptions options);
  ~ObservedModel();

  /// Arrays by graph input, in order. E::bad_binding where one does not fit; compiles on the first run, and once more
  /// when sizes change.
  void run(const std::vector<Tensor>& inputs);
  /// Of the last run; graph inputs too. Valid until the next one.
  ArrayView value(const std::string& name) const;
  std::vector<std::string> outputs() const;

 private:
  struct Running;
  Graph graph_;
  size_t own_outputs_ = 0;
  RunOptions options_;
  std::unique_ptr<Running> running_;
  std::map<std::string, ArrayView> inputs_;
};

}  // namespace opfuse::quantization
