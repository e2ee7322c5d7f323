// A graph compiled for this machine, some of whose values can be read after each run.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/step_progress.hpp"
#include "ir/graph.hpp"
#include "opfuse/runtime.hpp"
#include "quantize/tensor_statistics.hpp"

namespace opfuse::quantization {

struct RunOptions {
  int threads = 0;
  bool cache = true;  ///< of kernels
  StepProgress progress;
};

class ObservedModel {
 public:
  /// `values`: names of values of the graph. Outputs of the graph can be read too. `in_blocks`: values may lie in
  /// blocks of channels, as the kernels want them, which a model of convolutions takes half the time for.
  ObservedModel(const Graph& graph, const std::vector<std::string>& values, RunOptions options, bool in_blocks = false);
  ~ObservedModel();

  /// Arrays by graph input, in order. E::bad_binding where one does not fit; compiles on the first run, and once more
  /// when sizes change.
  void run(const std::vector<Tensor>& inputs);
  /// Of the last run; graph inputs too. Valid until the next one.
  ArrayView value(const std::string& name) const;
  /// How that array lies; nothing: densely.
  std::optional<ChannelBlocks> blocks(const std::string& name) const;
  std::vector<std::string> outputs() const;

 private:
  struct Running;
  Graph graph_;
  size_t own_outputs_ = 0;
  RunOptions options_;
  std::set<std::string> in_blocks_;
  std::unique_ptr<Running> running_;
  std::map<std::string, ArrayView> inputs_;
};

}  // namespace opfuse::quantization
