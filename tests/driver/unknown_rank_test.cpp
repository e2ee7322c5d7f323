// What an operator that opfuse does not know computes has no rank, nor what follows from it: such nodes are refused by
// name, never lowered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/pipeline.hpp"
#include "onnx/model_bytes.hpp"
#include "onnx/read.hpp"
#include "opfuse/error.hpp"
#include "region/lower.hpp"

namespace opfuse::test {
namespace {

Graph after_a_mystery() {
  const ModelBytes model{
      .graph = {.nodes = {node("Mystery", {"x"}, {"m"}, {}, "mystery"), node("Softmax", {"m"}, {"s"}, {}, "soft"),
                          node("Relu", {"s"}, {"y"}, {}, "last")},
                .inputs = {value_info("x", kFloat, {"2", "3"})},
                .outputs = {value_info("y", kFloat, {"2", "3"})}}};
  return read_onnx_bytes(model.text());
}

TEST(UnknownRank, IsDeclinedByName) {
  const Graph graph = after_a_mystery();
  const auto lowered = lower_group(*graph.nodes()[1]);
  const auto* why = std::get_if<Decline>(&lowered);
  ASSERT_NE(why, nullptr);
  EXPECT_EQ(why->code, "unknown_shape");
  EXPECT_THAT(why->message, testing::HasSubstr("'m'"));
}

TEST(UnknownRank, CompilingNamesTheNodes) {
  Graph graph = after_a_mystery();
  const TargetInfo target = host_target();
  prepare(graph, {}, nullptr);
  Graph fused = apply(graph, plan_graph(graph, target, {}));
  shape_for_target(fused, target);
  try {
    lower_to_program(fused, target);
    FAIL() << "compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().name, "uncompilable");
    EXPECT_THAT(error.diagnostic().text(), testing::AllOf(testing::HasSubstr("mystery"), testing::HasSubstr("soft")));
  }
}

}  // namespace
}  // namespace opfuse::test
