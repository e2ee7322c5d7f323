// A graph through the whole compiler, for a device.
#pragma once

#include <string>

#include "driver/pipeline.hpp"
#include "runtime/artifact.hpp"

namespace opfuse::test {

struct Compiled {
  Graph fused;
  Program program;
  Artifact artifact;
};
/// Without an artifact: nothing is generated.
Compiled lowered(Graph graph, const std::string& target = "cuda:emulated");
Compiled compiled(Graph graph, const std::string& target = "cuda:emulated");
Compiled compiled(const std::string& text);

}  // namespace opfuse::test
