// What an operator that opfuse does not know computes has no rank, nor what follows from it: such nodes are refused by
// name, never lowered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/pipeline.hpp"
#include "driver/shape_for_target.hpp"
#include "fusion/explain/explain.hpp"
#include "onnx/model_bytes.hpp"
#include "onnx/read.hpp"
#include "opfuse/error.hpp"
#include "ops/registry.hpp"
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

/// What may read a value of unknown rank: `#`; the result is `@`.
constexpr const char* kReaders[] = {
    "@ = concat(#, %x) {axis = 1}",
    "@ = concat(%x, #) {axis = -1}",
    "@, @2 = split(#) {axis = 1, num_outputs = 2}",
    "@ = slice(#, %zero, %one, %one)",
    "@ = slice(#, %zero, %one)",
    "@ = reshape(#, %sizes)",
    "@ = flatten(#)",
    "@ = squeeze(#, %zero)",
    "@ = unsqueeze(#, %zero)",
    "@ = transpose(#)",
    "@ = transpose(#) {perm = [0,2,1]}",
    "@ = matmul(#, %w)",
    "@ = matmul(%x, #)",
    "@ = gemm(#, %w)",
    "@ = conv(#, %k)",
    "@ = conv(%image, #)",
    "@ = conv_transpose(#, %k)",
    "@ = add(#, %x)",
    "@ = add(%x, #)",
    "@ = mul(#, #)",
    "@ = relu(#)",
    "@ = softmax(#) {axis = -1}",
    "@ = reduce_mean(#, %one)",
    "@ = reduce_mean(#) {axes = [2,3]}",
    "@ = layer_norm(#, %row, %row)",
    "@ = batch_norm(#, %row, %row, %row, %row)",
    "@ = instance_norm(#, %row, %row)",
    "@ = max_pool(#) {kernel_shape = [2,2]}",
    "@ = average_pool(#) {kernel_shape = [2,2]}",
    "@ = global_average_pool(#)",
    "@ = gather(#, %zero) {axis = 1}",
    "@ = gather(%x, %i)",
    "@ = gather_nd(#, %zero)",
    "@ = gather_elements(#, %i)",
    "@ = scatter_nd(#, %pair, %x)",
    "@ = pad(#, %four)",
    "@ = expand(#, %sizes)",
    "@ = tile(#, %sizes)",
    "@ = where(%b, #, %x)",
    "@ = cast(#) {to = f16}",
    "@ = shape(#)",
    "@ = cum_sum(#, %first)",
    "@ = arg_max(#) {axis = 1}",
    "@, @2 = top_k(#, %one) {axis = 1}",
    "@ = depth_to_space(#) {blocksize = 2}",
    "@ = trilu(#)",
    "@ = einsum(#, %w) {equation = \"ij,jk->ik\"}",
    "@ = quantize_linear(#, %scale, %point)",
};

std::string reader(std::string text, const std::string& result, const std::string& operand) {
  for (size_t at = 0; (at = text.find_first_of("@#", at)) != std::string::npos;)
    text.replace(at, 1, text[at] == '@' ? result : operand);
  return text;
}

Graph two_readers(const char* first, const char* second) {
  return parse_graph(R"(graph (%x: f32[4,8], %image: f32[1,4,8,8]) {
      %w = const rand<1> : f32[8,8]
      %k = const rand<2> : f32[4,4,1,1]
      %row = const rand<3> : f32[8]
      %zero = const dense<0> : i64[1]
      %one = const dense<1> : i64[1]
      %four = const dense<0,0,1,1> : i64[4]
      %pair = const dense<0,1,2,3> : i64[4,1]
      %sizes = const dense<2,2> : i64[2]
      %first = const splat<0> : i64[]
      %scale = const splat<0.5> : f32[]
      %point = const splat<0> : i8[]
      %m, %i, %b = opaque(%x) {domain = "d", op_type = "Mystery"}
      )" + reader(first, "%r", "%m") +
                         "\n" + reader(second, "%y", "%r") + "\n return %y }",
                     ops());
}

/// Every pair: planned, explained, and refused by name, whatever indexes whichever shape on the way.
TEST(UnknownRank, NeitherPlansNorKernelsIndexAShapeThatIsNotThere) {
  const TargetInfo target = parse_target("cpu:avx2");
  int refused = 0;
  for (const char* first : kReaders)
    for (const char* second : kReaders) {
      SCOPED_TRACE(std::string(first) + "   " + second);
      try {
        Graph graph = two_readers(first, second);
        prepare(graph, {}, nullptr);
        const FusionPlan plan = plan_graph(graph, target, {});
        missed(graph, plan, fusion_patterns());
        Graph fused = apply(graph, plan);
        shape_for_target(fused, target);
        lower_to_program(fused, target);
        FAIL() << "compiled";
      } catch (const Error& error) {
        EXPECT_NE(error.diagnostic().name, "internal") << error.what();
        refused += error.diagnostic().name == "uncompilable";
      }
    }
  EXPECT_GT(refused, 1000);  // the others are refused by inference already
}

}  // namespace
}  // namespace opfuse::test
