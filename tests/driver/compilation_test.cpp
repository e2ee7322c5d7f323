// One compiler behind every door: what the API, the command line's options and `explain` see is one Compilation.
#include "driver/compilation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/remarks.hpp"
#include "ops/registry.hpp"
#include "runtime/artifact.hpp"
#include "zoo/zoo.hpp"

namespace opfuse {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// MatMul and a GELU as exporters spell it: six operators, two after recomposition, one group.
Graph gelu() {
  return parse_graph(R"(graph @gelu(%x: f32[4,16]) {
    %w = const rand<1> : f32[16,32]
    %sqrt2 = const splat<1.4142135> : f32[]
    %one = const splat<1> : f32[]
    %half = const splat<0.5> : f32[]
    %m = matmul(%x, %w)  @"mm"(MatMul@17)
    %d = div(%m, %sqrt2)  @"div"(Div@17)
    %e = erf(%d)  @"erf"(Erf@17)
    %p = add(%e, %one)  @"plus"(Add@17)
    %t = mul(%m, %p)  @"times"(Mul@17)
    %y = mul(%t, %half)  @"half"(Mul@17)
    return %y
  })",
                     ops());
}

CompilationOptions uncached() {
  CompilationOptions options;
  options.artifact.cache = false;
  return options;
}

TEST(Compilation, UnfusedIsALaunchPerOperatorAsRead) {
  CompilationOptions options = uncached();
  options.fused = false;
  EXPECT_EQ(compile_graph(gelu(), host_target(), options).artifact.launches.size(), 6u);
  const Executable executable = compile(Model::from_graph(gelu()), Target::host(), {.cache = false, .fused = false});
  EXPECT_EQ(executable.artifact().launches.size(), 6u);
}

TEST(Compilation, EveryWayToCompileNamesTheSameSource) {
  const std::string hash = compile_graph(gelu(), host_target(), uncached()).artifact.model_hash;
  EXPECT_THAT(hash, testing::StartsWith("xxh3:"));
  const Model model = Model::from_graph(gelu());
  EXPECT_EQ(compile(model, Target::host(), {.cache = false}).artifact().model_hash, hash);
  const Fused fused = apply(model, plan(model, Target::host()));
  EXPECT_EQ(compile(fused.model, Target::host(), {.cache = false}).artifact().model_hash, hash);
}

TEST(Compilation, ChainsAreOffForTheLoopOverImagesToo) {
  const Graph graph = build_zoo("mobilenet_v2", {.batch = Dim::symbol("n"), .resolution = 224, .classes = 10});
  CompilationOptions options;
  Compilation with(graph, parse_target("cpu:avx512"), options);
  with.run_to(Milestone::lowered);
  EXPECT_FALSE(with.program.bodies.empty());
  options.no_pass = {"loop-over-images"};
  Compilation without(graph, parse_target("cpu:avx512"), options);
  without.run_to(Milestone::lowered);
  EXPECT_TRUE(without.program.bodies.empty());
  EXPECT_THAT(without.program.notes, Not(Contains(HasSubstr("image by image"))));
}

TEST(Compilation, StagesRunOnceAndInOrder) {
  std::vector<std::string> steps;
  CompilationOptions options = uncached();
  options.artifact.progress = [&](const std::string& step, size_t, size_t) {
    if (steps.empty() || steps.back() != step) steps.push_back(step);
  };
  Compilation compilation(gelu(), host_target(), options);
  compilation.run_to(Milestone::fused);
  EXPECT_EQ(compilation.reached, Milestone::fused);
  EXPECT_TRUE(compilation.program.launches.empty());
  compilation.run_to(Milestone::planned);  // it is further already
  EXPECT_EQ(compilation.reached, Milestone::fused);
  compilation.run_to(Milestone::lowered);
  EXPECT_EQ(steps, (std::vector<std::string>{"prepare", "plan", "lower"}));
  EXPECT_EQ(compilation.program.launches.size(), 1u);
}

TEST(Compilation, AFailedStageLeavesThoseBeforeIt) {
  const Graph graph = parse_graph(R"(graph (%x: f32[4,4]) {
    %r = relu(%x)  @"relu"(Relu@17)
    %y = opaque(%r) : f32[4,4]
    return %y
  })",
                                  ops());
  Compilation compilation(graph, host_target(), {});
  compilation.run_to(Milestone::shaped);
  EXPECT_THROW(compilation.run_to(Milestone::built), Error);
  EXPECT_EQ(compilation.reached, Milestone::shaped);
  EXPECT_FALSE(remarks_on(compilation, {.node = "relu"}).empty());
}

TEST(Compilation, ExplainSeesWhatCompileMakes) {
  const Graph graph = build_zoo("bert_base", {.batch = Dim(1), .resolution = 16, .classes = 10, .width = 0.125});
  Compilation compilation(graph, parse_target("cpu:avx512"), {});
  compilation.run_to(Milestone::shaped);
  ASSERT_FALSE(of_pass(compilation.verdicts, "merge-siblings").empty());
  bool told = false;
  for (const Remark& remark : remarks_on(compilation, {}))
    told = told || (remark.rule == "SiblingLinears" && remark.code == "one_product");
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace opfuse
