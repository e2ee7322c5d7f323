// A compiled part as ONNX Runtime runs it: any number of calls at once, each with a context of its own.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "opfuse/runtime.hpp"
#include "ort_abi.hpp"

namespace opfuse::ort {

class PartRunner : public NodeComputeInfo {
 public:
  /// `inputs`, `outputs`: of the fused node, in its order. Throws Failure where the executable's are not among them.
  PartRunner(Executable executable, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
             int threads);

 private:
  struct Port {
    std::string name;
    size_t index;  ///< of the fused node
  };
  void run(KernelContext* call);
  std::unique_ptr<Context> take();
  void give_back(std::unique_ptr<Context> context);

  Executable executable_;
  std::vector<Port> inputs_, outputs_;
  ContextOptions options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Context>> idle_;
};

}  // namespace opfuse::ort
