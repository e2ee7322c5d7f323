// A product that f32 rounds to 2.5 is 2 steps, and the exact one 3: neither launch has an error, and the output is a
// step off.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "driver/pipeline.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"

namespace opfuse {
namespace {

constexpr float kFactor = 0.3F;

/// The product with kFactor is more than 2.5 and next to it.
float above_the_tie() {
  for (float x = 2.5F / kFactor - 1e-5F;; x = std::nextafter(x, 100.0F)) {
    const double exact = static_cast<double>(x) * static_cast<double>(kFactor);
    if (exact > 2.5) return static_cast<float>(exact) == 2.5F ? x : 0;
  }
}

/// Each operator a launch. `name`: of the product, which the drawn noise depends on.
Comparison compared(const std::string& name, double x, const std::string& of_model = "") {
  const auto parsed = [&](const std::string& rest) {
    Graph graph =
        parse_graph(fmt::format("graph (%x: f32[4]) {{ %a = const splat<{:.9g}> : f32[] %s = const splat<1> : f32[]"
                                " %{} = mul(%x, %a) %q = quantize_linear(%{}, %s) %d = dequantize_linear(%q, %s)"
                                " %y = neg(%d){} return %{} }}",
                                kFactor, name, name, rest, rest.empty() ? "y" : "z"),
                    ops());
    prepare(graph, {}, nullptr);
    return graph;
  };
  const TargetInfo target = parse_target("host");
  const Graph graph = parsed("");
  const Program program = lower_to_program(graph, target);
  const Executable executable = Executable::from_artifact(build_artifact(program, target, {.cache = false}));
  const std::vector<Tensor> inputs{Tensor::of(DType::f32, {4}, std::vector<double>{x, 1, 0.1, 4.1})};
  return compare_model(parsed(of_model), graph, program, executable, inputs, {}, {});
}

TEST(TieBetweenGroups, ExplainsAStepAndIsNamed) {
  ASSERT_GT(above_the_tie(), 0);
  int named = 0;
  for (int i = 0; i < 12; ++i) {
    const Comparison c = compared(fmt::format("m{}", i), above_the_tie());
    ASSERT_GT(c.groups.size(), 1u);
    EXPECT_TRUE(c.ok()) << i;
    EXPECT_EQ(c.outputs[0].difference.max_abs, 1);
    if (c.outputs[0].tie_at.empty()) continue;  // noise moved it to the other side: that explains it too
    EXPECT_FALSE(c.outputs[0].judged);
    EXPECT_NE(c.outputs[0].tie_at.find("quantize"), std::string::npos);
    ++named;
  }
  EXPECT_GT(named, 0);
}

TEST(TieBetweenGroups, IsNoExcuseWhereNoneIs) {
  EXPECT_TRUE(compared("m", 8).ok());
  const Comparison wrong = compared("m", 8, " %z = add(%y, %s)");
  EXPECT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.outputs[0].tie_at, "");
}

}  // namespace
}  // namespace opfuse
