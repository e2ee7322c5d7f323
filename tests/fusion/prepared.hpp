// Models as the planner sees them: cleaned, recomposed, converted.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "fusion/plan.hpp"
#include "onnx/read.hpp"
#include "ops/registry.hpp"
#include "passes/passes.hpp"
#include "zoo/zoo.hpp"

namespace opfuse {

inline Graph prepared(Graph graph, RewriteReport* report = nullptr) {
  run_passes(graph, preparing_passes(), {.report = report});
  return graph;
}

inline Graph prepared_text(const std::string& text, RewriteReport* report = nullptr) {
  return prepared(parse_graph(text, ops()), report);
}

/// Path of a model of OPFUSE_TEST_MODELS, empty when it is not there.
inline std::string test_model(const std::string& name) {
  const char* folder = std::getenv("OPFUSE_TEST_MODELS");
  if (!folder) return {};
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  return std::filesystem::exists(path) ? path.string() : std::string();
}

#define OPFUSE_NEED_MODEL(path, name)                  \
  const std::string path = ::opfuse::test_model(name); \
  if (path.empty()) GTEST_SKIP() << "needs " << name << " in the folder OPFUSE_TEST_MODELS"

}  // namespace opfuse
