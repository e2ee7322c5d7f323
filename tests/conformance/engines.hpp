// The ways to run a case: each must give the expected outputs.
#pragma once

#include <functional>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse::conformance {

struct Engine {
  const char* name;
  std::function<std::vector<Tensor>(const Graph&, const std::vector<Tensor>&)> run;
};

/// Interpreted; written to ONNX, read back and interpreted; compiled unfused; planned, fused and compiled.
const std::vector<Engine>& engines();

}  // namespace opfuse::conformance
