// opfuse in one session of ONNX Runtime.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compute.hpp"
#include "partition.hpp"

namespace opfuse::ort {

class Provider : public Ep {
 public:
  Provider(Options options, const Logger* logger);

 private:
  void claim(const Graph* graph, SupportInfo* found);
  void compile(const Graph** graphs, const Node** fused, size_t count, NodeComputeInfo** runners, Node** contexts);
  std::unique_ptr<PartRunner> runner_of(const Graph* graph, const Node* fused, Node** context);
  void log(int level, const std::string& text) const;

  const Options options_;
  const Logger* const logger_;
  std::vector<Part> parts_;  ///< claimed and not handed back yet
};

}  // namespace opfuse::ort
