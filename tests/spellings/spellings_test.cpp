// Every .fir in this folder is one exporter's way to write an activation after a convolution. All must fuse as
// ConvBNReLU with the folder's activation, and keep their values.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "fusion/plan.hpp"
#include "match/activation.hpp"
#include "ops/registry.hpp"
#include "passes/passes.hpp"
#include "passes/recompose.hpp"
#include "testing/corners.hpp"

namespace opfuse {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<fs::path> spelling_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(OPFUSE_TEST_DIR) / "spellings"))
    if (entry.path().extension() == ".fir") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string name_of(const fs::path& file) {
  return file.parent_path().filename().string() + "_" + file.stem().string();
}

class Spelling : public ::testing::TestWithParam<fs::path> {};

TEST_P(Spelling, FusesAsConvBNReLUAndKeepsItsValues) {
  const Graph original = parse_graph(read_text(GetParam()), ops());
  Graph graph = original.clone();
  RewriteReport report;
  run_passes(graph, recompose_passes(), {.report = &report});
  verify(graph);
  const FusionPlan plan = make_plan(graph);
  const auto applied = plan.applied();
  ASSERT_EQ(applied.size(), 1u) << print(graph);
  EXPECT_EQ(applied[0]->pattern, "ConvBNReLU") << print(graph);
  EXPECT_EQ(applied[0]->nodes.size(), graph.nodes().size()) << print(graph);
  ASSERT_EQ(applied[0]->points.size(), 1u);
  EXPECT_EQ(applied[0]->points[0], (QdqPoint{"INPUT", graph.inputs()[0]->name}));
  const std::string folder = GetParam().parent_path().filename().string();
  if (folder != "conv_affine") {
    EXPECT_EQ(activation_name(*graph.nodes().back()), folder);
  }
  const Graph fused = apply(graph, plan);
  verify(fused);
  EXPECT_EQ(fused.nodes().size(), 1u);
  testing::expect_same_on_corners(original, fused);
}

INSTANTIATE_TEST_SUITE_P(All, Spelling, ::testing::ValuesIn(spelling_files()),
                         [](const auto& info) { return name_of(info.param); });

TEST(Spellings, AreAtLeastFourForEachOfTheEightActivations) {
  std::map<std::string, int> count;
  for (const fs::path& f : spelling_files()) ++count[f.parent_path().filename().string()];
  for (const char* name : {"relu", "relu6", "leaky_relu", "elu", "gelu", "silu", "hard_swish", "hard_sigmoid"})
    EXPECT_GE(count[name], 4) << name;
}

TEST(Spellings, NameTheirExporterAndOpset) {
  for (const fs::path& f : spelling_files()) EXPECT_NE(read_text(f).find("opset"), std::string::npos) << f;
}

}  // namespace
}  // namespace opfuse
