// Operands that only a run reveals as impossible: symbolic extents, shapes computed from data.
#include <gtest/gtest.h>

#include "base/fail.hpp"
#include "interp/interpreter.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

std::string error_of(const Graph& graph, const std::vector<Tensor>& inputs) {
  try {
    interpret(graph, inputs);
  } catch (const Error& error) {
    return error.diagnostic().name + " at " + error.diagnostic().node;
  }
  return "none";
}

TEST(Interpreter, RefusesAConvolutionWhoseSymbolicChannelsDoNotFit) {
  Graph g;
  Value* x = g.add_input("x", parse_type("f32[1,c,4,4]"));
  Value* w = g.add_constant(Tensor(DType::f32, {2, 3, 3, 3}));
  g.set_outputs({g.add_node(op_named("conv"), AttrMap{}, {x, w}, 1, {{"c1", "Conv", "", 17}})->output()});
  EXPECT_EQ(error_of(g, {Tensor(DType::f32, {1, 2, 4, 4})}), "channel_mismatch at c1");
  EXPECT_EQ(error_of(g, {Tensor(DType::f32, {1, 3, 4, 4})}), "none");
}

TEST(Interpreter, RefusesAnOpenExtentThatIsSmallerThanItsWindow) {
  const Graph g = parse_graph(R"(graph (%x: f32[1,2,h,4]) {
    %y = max_pool(%x) {kernel_shape = [2,2], strides = [2,2]} @"p"(MaxPool@17) return %y })",
                              ops());
  EXPECT_EQ(error_of(g, {Tensor(DType::f32, {1, 2, 1, 4})}), "shape_mismatch at p");  // as a run does
  EXPECT_EQ(error_of(g, {Tensor(DType::f32, {1, 2, 2, 4})}), "none");
}

TEST(Interpreter, ChecksShapesThatDependOnData) {
  Graph g;
  Value* x = g.add_input("x", parse_type("f32[3]"));
  Value* at = g.add_node(op_named("non_zero"), AttrMap{}, {x}, 1, {{"n", "NonZero", "", 17}})->output();
  Value* other = g.add_input("y", parse_type("i64[2]"));
  g.set_outputs({g.add_node(op_named("matmul"), AttrMap{}, {at, other}, 1, {{"m", "MatMul", "", 17}})->output()});
  const Tensor y = Tensor::from_i64({1, 10});
  EXPECT_EQ(error_of(g, {Tensor::of<int>(DType::f32, {3}, {1, 1, 1}), y}), "shape_mismatch at m");
  EXPECT_EQ(interpret(g, {Tensor::of<int>(DType::f32, {3}, {0, 1, 1}), y}).at(0).integer(0), 21);
}

}  // namespace
}  // namespace opfuse
