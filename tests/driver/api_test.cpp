// The public API: what is not already seen through the command line.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/temporary_folder.hpp"
#include "onnx/write.hpp"
#include "opfuse/opfuse.hpp"
#include "ops/registry.hpp"
#include "runtime/artifact.hpp"

namespace opfuse {
namespace {

TEST(PublicApi, CountsModulesOfAFusedModel) {
  const Model model = Model::zoo("resnet18");
  EXPECT_TRUE(model.modules().empty());
  Plan plan = opfuse::plan(model, Target::host());
  EXPECT_EQ(apply(model, plan).model.modules(), plan.modules());
  for (const PlanEntry& entry : plan.entries())
    if (entry.rule == "ConvBNReLU") plan.at(entry.id).apply = false;
  const auto fewer = apply(model, plan).model.modules();
  EXPECT_EQ(fewer, plan.modules());
  EXPECT_FALSE(fewer.contains("FusedConvBNReLU"));
}

TEST(PublicApi, ExplainsThePlanItIsGiven) {
  const Model model = Model::zoo("resnet18");
  const Plan plan = opfuse::plan(model, Target::host());
  const std::vector<Remark> all = explain(model, plan);
  const auto kind = [](const char* name) { return [name](const Remark& r) { return r.kind == name; }; };
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), kind("passed")));
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), kind("analysis")));
  const std::vector<Remark> groups = explain(model, plan, {.missed = false});
  EXPECT_TRUE(std::all_of(groups.begin(), groups.end(), kind("passed")));
  const std::vector<Remark> node = explain(model, plan, {.node = "/layer1/layer1.0/relu/Relu"});
  ASSERT_FALSE(node.empty());
  EXPECT_EQ(node[0].rule, "ConvBNReLU");
  EXPECT_NE(remarks_text(node).find("PASSED   ConvBNReLU at /layer1/layer1.0/relu/Relu"), std::string::npos);
  EXPECT_THROW(explain(model, plan, {.node = "nowhere"}), Error);
  EXPECT_THROW(explain(Model::zoo("mobilenet_v2"), plan), Error);
}

/// As the command line does: a negative number of threads was taken for all, and a folder's failure was not an Error.
TEST(PublicApi, RefusesOptionsThatNoFlagTakes) {
  const Model model = Model::from_graph(parse_graph("graph (%x: f32[3]) { %y = relu(%x) return %y }", ops()));
  const auto name_of = [&](const CompileOptions& options) -> std::string {
    try {
      compile(model, Target::host(), options);
      return "compiled";
    } catch (const Error& error) {
      return error.diagnostic().name;
    }
  };
  EXPECT_EQ(name_of({.threads = -1}), "bad_option");
  EXPECT_EQ(name_of({.compile_threads = -1}), "bad_option");
  EXPECT_EQ(name_of({.max_weight_growth = -1}), "bad_option");
  EXPECT_EQ(name_of({.workspace = -1}), "bad_option");
  EXPECT_EQ(name_of({.dump_dir = "/proc/x"}), "file_write_failed");
}

TEST(PublicApi, NamesPatternsInTheirOrder) {
  const std::vector<std::string> names = pattern_names();
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names[0], "StemConvBNReLUMaxPool");
  const std::string file = std::string(OPFUSE_SOURCE_DIR) + "/examples/patterns/gate.toml";
  const std::vector<std::string> more = pattern_names({file});
  ASSERT_EQ(more.size(), names.size() + 2);
  EXPECT_EQ(more[0], "ConvGate");
}

TEST(PublicApi, KnowsTheShapeOfAnOutputBeforeTheRun) {
  const Executable exe = compile(Model::zoo("resnet18"), Target::host());
  Context context = exe.create_context();
  EXPECT_THROW(context.output_shape("output"), Error);  // no input is bound
  std::vector<float> image(3 * 224 * 224);
  context.bind("input", view(image, {1, 3, 224, 224}));
  EXPECT_EQ(context.output_shape("output"), (std::vector<int64_t>{1, 1000}));
  EXPECT_THROW(context.output_shape("scores"), Error);
}

/// Axes, sizes and repeats that are inputs fold when their value is given; a run may give that value only.
TEST(PublicApi, FixedInputsFoldAndAreHeldTo) {
  const Graph graph =
      parse_graph("graph (%x: f32[2,6], %shape: i64[2]) {\n%r = reshape(%x, %shape) %y = relu(%r)\nreturn %y }", ops());
  const TemporaryFolder folder;
  const std::string file = folder.path("m.onnx");
  write_onnx(graph, file);
  std::vector<int64_t> shape{3, 4}, other{4, 3};
  const std::map<std::string, ArrayView> fixed{{"shape", view(shape, {2})}};
  const Executable loaded = compile(Model::load(file, {.fixed_inputs = fixed}), Target::host());
  const Executable compiled = compile(Model::load(file), Target::host(), {.fixed_inputs = fixed});
  for (const Executable& exe : {loaded, compiled}) {
    EXPECT_EQ(exe.artifact().launches.size(), 1u);
    Context context = exe.create_context();
    std::vector<float> x(12, 1.0F);
    context.bind("x", view(x, {2, 6}));
    EXPECT_EQ(context.output_shape("y"), (std::vector<int64_t>{3, 4}));
    context.bind("shape", view(shape, {2}));
    EXPECT_THROW(context.bind("shape", view(other, {2})), Error);
    context.run();
  }
}

}  // namespace
}  // namespace opfuse
