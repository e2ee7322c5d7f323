// Shapes that exporters compute instead of writing down: inference follows them for dynamic dimensions.
#include <gtest/gtest.h>

#include "interp/interpreter.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

/// The type of the graph's only output; `run` also checks that running gives that type.
std::string output_type(const std::string& text) { return parse_graph(text, ops()).outputs().at(0)->type.text(); }

TEST(ShapeIdioms, ViewWithTheBatchOfTheInput) {  // x.view(x.size(0), -1)
  EXPECT_EQ(output_type(R"(graph (%x: f32[n,64,h,7]) {
      %s = shape(%x)
      %zero = const dense<0> : i64[]
      %n = gather(%s, %zero) {axis = 0}
      %axes = const dense<0> : i64[1]
      %n1 = unsqueeze(%n, %axes)
      %rest = const dense<-1> : i64[1]
      %to = concat(%n1, %rest) {axis = 0}
      %y = reshape(%x, %to)
      return %y })"),
            "f32[n,448*h]");
}

TEST(ShapeIdioms, HeadsOfAttention) {  // x.view(b, t, 12, 64).transpose(1, 2)
  EXPECT_EQ(output_type(R"(graph (%x: f32[b,t,768]) {
      %s = shape(%x)
      %first = const dense<0> : i64[1]
      %second = const dense<2> : i64[1]
      %bt = slice(%s, %first, %second)
      %heads = const dense<12,64> : i64[2]
      %to = concat(%bt, %heads) {axis = 0}
      %v = reshape(%x, %to)
      %y = transpose(%v) {perm = [0,2,1,3]}
      return %y })"),
            "f32[b,12,t,64]");
}

TEST(ShapeIdioms, ExpandWhoseTargetIsComparedWithMinusOne) {  // x.expand(b, -1, -1)
  EXPECT_EQ(output_type(R"(graph (%x: f32[b,3], %token: f32[1,1,768]) {
      %b1 = shape(%x) {end = 1}
      %keep = const dense<-1,-1> : i64[2]
      %wanted = concat(%b1, %keep) {axis = 0}
      %three = const dense<3> : i64[1]
      %ones = constant_of_shape(%three) {dtype = i64, value = 1}
      %minus = const dense<-1> : i64[]
      %neg = mul(%ones, %minus)
      %open = equal(%wanted, %neg)
      %to = where(%open, %ones, %wanted)
      %y = expand(%token, %to)
      return %y })"),
            "f32[b,1,768]");
}

TEST(ShapeIdioms, PositionsUpToTheLength) {  // torch.arange(x.size(1))
  EXPECT_EQ(output_type(R"(graph (%x: f32[b,t,8]) {
      %s = shape(%x) {start = 1, end = 2}
      %t = squeeze(%s)
      %zero = const dense<0> : i64[]
      %one = const dense<1> : i64[]
      %y = range(%zero, %t, %one)
      return %y })"),
            "i64[t]");
}

TEST(ShapeIdioms, PositionsAsRealNumbers) {  // torch.arange(x.size(1), dtype=torch.float32)
  EXPECT_EQ(output_type(R"(graph (%x: f32[b,t,8]) {
      %s = shape(%x) {start = 1, end = 2}
      %t = squeeze(%s)
      %end = cast(%t) {to = f32}
      %zero = const dense<0> : f32[]
      %two = const dense<2> : f32[]
      %y = range(%zero, %end, %two)
      return %y })"),
            "f32[(t + 1) / 2]");
}

TEST(ShapeIdioms, AQuotientOfRealSizesIsNoSize) {  // int(h / w)
  EXPECT_EQ(output_type(R"(graph (%x: f32[h,w]) {
      %s = shape(%x)
      %r = cast(%s) {to = f32}
      %two = const dense<2> : f32[]
      %half = div(%r, %two)
      %i = cast(%half) {to = i64}
      %y = constant_of_shape(%i)
      return %y })"),
            "f32[*]");
}

TEST(ShapeIdioms, HalvesOfADimension) {  // x.chunk(2) by slicing to size // 2
  EXPECT_EQ(output_type(R"(graph (%x: f32[b,2*c]) {
      %s = shape(%x) {start = 1}
      %one = const dense<1> : i64[1]
      %plus = add(%s, %one)
      %two = const dense<2> : i64[1]
      %half = div(%plus, %two)
      %b = shape(%x) {end = 1}
      %to = concat(%b, %half) {axis = 0}
      %y = constant_of_shape(%to)
      return %y })"),
            "f32[b,c]");
}

TEST(ShapeIdioms, AShapeComputedFromDataIsUnknownAndStillRuns) {
  const Graph graph = parse_graph(R"(graph (%x: f32[6], %to: i64[2]) {
      %y = reshape(%x, %to)
      %z = relu(%y)
      return %z })",
                                  ops());
  EXPECT_EQ(graph.outputs()[0]->type.text(), "f32[*]");
  const Tensor x = Tensor::of<double>(DType::f32, {6}, {-1, 2, -3, 4, -5, 6});
  const Tensor z = interpret(graph, {x, Tensor::from_i64({2, 3})})[0];
  EXPECT_EQ(z.type().text(), "f32[2,3]");
  EXPECT_EQ(z.real(5), 6);
}

}  // namespace
}  // namespace opfuse
