// Files that this release and the one of the version before wrote (tests/data/golden/make.py): executables run to the
// interpreter's values, plans apply. A file whose version is no longer read has to name the remedy instead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/file_bytes.hpp"
#include "driver/pipeline.hpp"
#include "fusion/plan.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "opfuse/opfuse.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"
#include "runtime/artifact.hpp"
#include "testing/temporary_folder.hpp"

namespace opfuse {
namespace {

const std::string kFolder = std::string(OPFUSE_TEST_DIR) + "/data/golden/";

std::string contents(const std::string& path) { return file_bytes(path).value_or(""); }

Graph golden_graph() { return parse_graph(contents(kFolder + "small.fir"), ops()); }

/// Of sizes with a variant and without.
void expect_values(const Executable& exe) {
  const Graph graph = golden_graph();
  for (const int64_t n : {2, 3}) {
    const std::vector<Tensor> x = random_inputs(graph, {.seed = 5, .symbols = {{"n", n}}});
    const Tensor expected = interpret(graph, x).at(0);
    Context context = exe.create_context({.threads = 1});
    context.bind("x", {x[0].dtype(), const_cast<void*>(x[0].data()), x[0].sizes()});
    EXPECT_EQ(context.variant().empty(), n != 2);
    context.run();
    const ArrayView y = context.output("y");
    ASSERT_EQ(y.shape, expected.sizes());
    for (int64_t i = 0; i < expected.elements(); ++i)
      EXPECT_NEAR(static_cast<const float*>(y.data)[i], expected.real(i), 1e-5) << "n = " << n << ", element " << i;
  }
}

TEST(Golden, FilesOfThisAndTheLastFormatRun) {
  for (const int format : {kArtifactFormat - 1, kArtifactFormat}) {
    SCOPED_TRACE("format " + std::to_string(format));
    const Executable exe = Executable::load(kFolder + "small-" + std::to_string(format) + ".opf");
    EXPECT_EQ(exe.artifact().format, format);
    EXPECT_NE(exe.artifact().plan_json, "");
    expect_values(exe);
    const TemporaryFolder folder;
    exe.save(folder.path("again.opf"));  // in this format
    const Executable again = Executable::load(folder.path("again.opf"));
    EXPECT_EQ(again.artifact().format, kArtifactFormat);
    EXPECT_EQ(again.artifact().plan_json, exe.artifact().plan_json);
    expect_values(again);
  }
}

/// The values of the interpreter.
void expect_outputs(const Executable& exe, const Graph& graph, const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> want = interpret(graph, inputs), got = run_executable(exe, inputs, {.threads = 1});
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_LE(difference(got[i], want[i]).relative(), 1e-5) << i;
}

TEST(Golden, LoopsOfThisAndTheLastVersionRun) {
  struct Case {
    const char* model;
    std::vector<int64_t> batches;
  };
  for (const Case& c : {Case{"loops", {3}}, Case{"open", {1, 4}}}) {
    const Graph graph = parse_graph(contents(kFolder + c.model + ".fir"), ops());
    for (const char* version : {"-1.opf", "-2.opf"}) {
      SCOPED_TRACE(std::string(c.model) + version);
      const Executable exe = Executable::load(kFolder + c.model + version);
      EXPECT_FALSE(exe.artifact().bodies.empty());
      const TemporaryFolder folder;
      exe.save(folder.path("again.opf"));  // in this version
      const Executable again = Executable::load(folder.path("again.opf"));
      for (const int64_t batch : c.batches) {
        const SymbolValues sizes = graph.symbols().empty() ? SymbolValues{} : SymbolValues{{"n", batch}};
        const std::vector<Tensor> inputs = random_inputs(graph, {.seed = 9, .symbols = sizes});
        expect_outputs(exe, graph, inputs);
        expect_outputs(again, graph, inputs);
      }
    }
  }
}

TEST(Golden, FormatsBeforeThatNameTheRemedy) {
  std::string bytes = contents(kFolder + "small-4.opf");
  const size_t at = bytes.find("\"format\":4");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 9] = '3';
  const TemporaryFolder folder;
  std::ofstream(folder.path("old.opf"), std::ios::binary) << bytes;
  try {
    load_artifact(folder.path("old.opf"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().name, "bad_file");
    EXPECT_THAT(error.diagnostic().hint, testing::HasSubstr("compile the model again"));
  }
}

TEST(Golden, PlansOfThisAndTheLastSchemaApply) {
  const std::string schema = kPlanSchema;
  const int newest = std::stoi(schema.substr(schema.find('/') + 1));
  const Model model = Model::from_graph(golden_graph());
  for (const int version : {newest - 1, newest}) {
    SCOPED_TRACE("schema " + std::to_string(version));
    const Plan plan = Plan::from_json(contents(kFolder + "plan-" + std::to_string(version) + ".json"), model);
    const Fused fused = apply(model, plan);
    ASSERT_EQ(fused.model.graph().nodes().size(), 1U);
    EXPECT_EQ(fused.model.graph().nodes()[0]->body->nodes().size(), 3U);
  }
}

}  // namespace
}  // namespace opfuse
