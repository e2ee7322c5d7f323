// Activations by tables are there by default, gone with --exact, and never silent.
#include <gtest/gtest.h>

#include <algorithm>

#include "cpu/activation_form.hpp"
#include "driver/pipeline.hpp"
#include "interp/random_inputs.hpp"
#include "opfuse/opfuse.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"

namespace opfuse {
namespace {

/// A convolution that may not be Winograd's and one that may, each with SiLU, and one without.
Graph layers(const std::string& batch = "1") {
  return parse_graph("graph @layers(%x: f32[" + batch + R"(,32,28,28]) {
    %w = const rand<1> : f32[64,32,1,1]
    %v = const rand<2> : f32[64,64,3,3]
    %u = const rand<3> : f32[16,64,1,1]
    %a = conv(%x, %w)  @"one"(Conv@17)
    %b = sigmoid(%a)  @"s1"(Sigmoid@17)
    %c = mul(%a, %b)  @"m1"(Mul@17)
    %d = conv(%c, %v) {pads = [1,1,1,1]}  @"three"(Conv@17)
    %e = sigmoid(%d)  @"s2"(Sigmoid@17)
    %f = mul(%d, %e)  @"m2"(Mul@17)
    %y = conv(%f, %u)  @"last"(Conv@17)
    return %y
  })",
                     ops());
}

Program lower(const Graph& model, const AlgorithmRequest& request, const std::string& target = "cpu:avx512") {
  Graph graph = model.clone();
  prepare(graph, {}, nullptr);
  graph = apply(graph, plan_graph(graph, parse_target(target), {}));
  return lower_to_program(graph, parse_target(target), {false, request});
}

int64_t kernels_with_tables(const Program& program) {
  return std::count_if(program.launches.begin(), program.launches.end(),
                       [](const Launch& launch) { return launch.schedule.get(kActivationTables, 0) != 0; });
}

std::vector<std::string> notes_on_tables(const std::vector<std::string>& notes) {
  std::vector<std::string> found;
  for (const std::string& note : notes)
    if (note.find("by tables") != std::string::npos) found.push_back(note);
  return found;
}

TEST(ActivationTables, AreTheDefaultAndNoted) {
  const Program program = lower(layers(), {.only = {"f4@three"}, .threads = 1});
  EXPECT_EQ(program.algorithms.at(1).name, "f4");
  EXPECT_EQ(kernels_with_tables(program), 2) << "Winograd's kernel too, the last one not";
  EXPECT_EQ(notes_on_tables(program.notes),
            std::vector<std::string>{"SiLU by tables in 2 kernels: within 2.6 ULP for x > -1, 4e-7 absolute below; "
                                     "--exact: 3 ULP"});
}

TEST(ActivationTables, AreGoneWithExact) {
  const Program program = lower(layers(), {.exact = true, .threads = 1});
  EXPECT_EQ(kernels_with_tables(program), 0);
  EXPECT_TRUE(notes_on_tables(program.notes).empty());
}

TEST(ActivationTables, NeedSixteenLanes) {
  const Program program = lower(layers(), {.threads = 1}, "cpu:avx2");
  EXPECT_EQ(kernels_with_tables(program), 0);
  EXPECT_TRUE(notes_on_tables(program.notes).empty());
}

TEST(ActivationTables, FollowExactInVariantsAndInTheApi) {
  if (Target::host().info().lanes_f32() != 16) GTEST_SKIP() << "no tables";
  const Graph graph = layers("n");
  for (const bool exact : {false, true}) {
    const Executable exe = compile(Model::from_graph(graph.clone()), Target::host(),
                                   {.specialize = {{{"n", 2}}}, .cache = false, .exact = exact, .threads = 1});
    const Artifact& a = exe.artifact();
    ASSERT_EQ(a.variants.size(), 1U);
    const std::string knob = std::string(kActivationTables) + "=1";
    for (const auto& launches : {a.launches, a.variants[0].launches}) {
      const auto with = std::count_if(launches.begin(), launches.end(), [&](const ArtifactLaunch& launch) {
        return launch.schedule.find(knob) != std::string::npos;
      });
      EXPECT_EQ(with, exact ? 0 : 2);
    }
    EXPECT_EQ(notes_on_tables(a.notes).size(), exact ? 0U : 2U) << "of the program and of its variant";
    for (const int64_t n : {1, 2}) {
      const std::vector<Tensor> inputs = random_inputs(graph, {.seed = 3, .symbols = {{"n", n}}});
      for (const OutputComparison& output : compare_outputs(graph, exe, inputs, inputs, {}))
        EXPECT_TRUE(output.ok) << output.difference.relative();
    }
  }
}

}  // namespace
}  // namespace opfuse
