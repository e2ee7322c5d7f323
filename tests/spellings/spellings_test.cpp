// Every .fir in this folder is one exporter's way to write an activation after a convolution. All must fuse as
// ConvBNReLU with the folder's activation, and keep their values.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "fusion/plan.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
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

/// Exporters round the constants to the type of the values: 1.4142 is 1.41406 in f16, 1.41406 in bf16 as well.
TEST(Spellings, AreReadInHalfPrecisionToo) {
  for (const fs::path& file : spelling_files())
    for (const auto& [type, tolerance] : {std::pair{"f16", 2e-3}, std::pair{"bf16", 1.6e-2}}) {
      const std::string folder = file.parent_path().filename().string();
      if (folder == "conv_affine") continue;
      const std::string text = std::regex_replace(read_text(file), std::regex("f32"), type);
      SCOPED_TRACE(name_of(file) + " in " + type);
      const Graph original = parse_graph(text, ops());
      Graph graph = original.clone();
      run_passes(graph, recompose_passes());
      EXPECT_EQ(activation_name(*graph.nodes().back()), folder) << print(graph);
      const std::vector<Tensor> inputs = random_inputs(original);
      const auto want = interpret(original, inputs), got = interpret(graph, inputs);
      EXPECT_LE(difference(got[0], want[0]).relative(), tolerance);
    }
}

TEST(Spellings, NameTheirExporterAndOpset) {
  for (const fs::path& f : spelling_files()) EXPECT_NE(read_text(f).find("opset"), std::string::npos) << f;
}

}  // namespace
}  // namespace opfuse
