// Operators outside the usual networks: they lower too, mostly to rows that search.
#include "lower_support.hpp"

namespace opfuse {
namespace {

using namespace testing_region;

TEST(LowerConvTranspose, PhasesOfEveryStrideAndDilation) {
  struct Case {
    Shape x;
    Ints w;
    AttrMap attrs;
  };
  const Case cases[] = {
      {{1, 3, 4, 5}, {3, 4, 3, 3}, {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}},
      {{1, 3, 4, 5}, {3, 4, 2, 2}, {{"strides", Ints{2, 2}}}},
      {{2, 4, 3, 3}, {4, 2, 3, 3}, {{"group", int64_t{2}}, {"strides", Ints{3, 1}}, {"output_padding", Ints{1, 0}}}},
      {{1, 2, 5}, {2, 3, 2}, {{"strides", Ints{3}}}},
      {{1, 2, 4, 4}, {2, 3, 3, 3}, {{"dilations", Ints{2, 2}}, {"strides", Ints{2, 1}}}},
      {{1, 2, 4, 4}, {2, 3, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}},
      {{1, 2, 4, 4}, {2, 1, 4, 3}, {{"strides", Ints{2, 3}}, {"pads", Ints{1, 0, 1, 1}}}},
      {{1, 2, 4, 4}, {2, 1, 3, 3}, {{"group", int64_t{2}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}},
      {{1, 2, 3}, {2, 3, 2}, {{"strides", Ints{3}}, {"pads", Ints{1, 1}}}},
  };
  for (const Case& c : cases) {
    Net net;
    Value* x = net.input(c.x);
    const int64_t group = find(c.attrs, "group") != nullptr ? 2 : 1;
    expect_lowers(net, net("conv_transpose", {x, net.constant(c.w), net.constant({c.w[1] * group})}, c.attrs));
  }
}

TEST(LowerEinsum, ProductsDiagonalsSumsAndEllipses) {
  struct Case {
    const char* equation;
    std::vector<Shape> operands;
  };
  for (const Case& c : {Case{"bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}}, Case{"ij->ji", {{3, 4}}}, Case{"ii->i", {{4, 4}}},
                        Case{"ij->i", {{3, 4}}}, Case{"i,i", {{5}, {5}}}, Case{"...ij,jk->...ik", {{2, 3, 4}, {4, 5}}},
                        Case{"i,j->ij", {{3}, {4}}}, Case{"ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}}}) {
    Net net;
    std::vector<Value*> operands;
    for (const Shape& shape : c.operands) operands.push_back(net.input(shape));
    expect_lowers(net, net("einsum", operands, {{"equation", std::string(c.equation)}}));
  }
}

TEST(LowerScatter, TheLastUpdateWinsOrAllAreCombined) {
  for (const char* law : {"none", "add", "mul", "max", "min"}) {
    Net elements;
    Value* x = elements.input({3, 5});
    Value* indices = elements.graph.add_constant(Tensor::of<int64_t>(DType::i64, {2, 3}, {0, -1, 0, 2, 2, 1}));
    expect_lowers(elements, elements("scatter_elements", {x, indices, elements.input({2, 3})},
                                     {{"axis", int64_t{1}}, {"reduction", std::string(law)}}));
    Net nd;
    Value* data = nd.input({4, 3, 2});
    Value* tuples = nd.graph.add_constant(Tensor::of<int64_t>(DType::i64, {3, 2}, {0, 1, 3, -1, 0, 1}));
    expect_lowers(nd, nd("scatter_nd", {data, tuples, nd.input({3, 2})}, {{"reduction", std::string(law)}}));
  }
}

TEST(LowerScatter, BoxesOfConstantIndicesMoveElements) {
  Net net;
  Value* x = net.input({9, 5});
  Value* indices =
      net.graph.add_constant(Tensor::of<int64_t>(DType::i64, {1, 3, 2, 2}, {1, 1, 1, -1, 4, 1, 4, 4, 7, 1, 7, 4}));
  const Region box = expect_lowers(net, net("scatter_nd", {x, indices, net.input({1, 3, 2})}));
  ASSERT_EQ(box.stages.size(), 1u);
  EXPECT_EQ(box.stages[0].anchor, Anchor::map);
  Net crossed;  // both coordinates follow one axis
  Value* diagonal = crossed.graph.add_constant(Tensor::of<int64_t>(DType::i64, {3, 2}, {0, 0, 1, 1, 2, 2}));
  const Region scattered =
      expect_lowers(crossed, crossed("scatter_nd", {crossed.input({4, 5}), diagonal, crossed.input({3})}));
  EXPECT_EQ(scattered.stages.back().anchor, Anchor::scatter);
  Net none;
  Value* no_indices = none.graph.add_constant(Tensor(DType::i64, {0, 1}));
  expect_lowers(none, none("scatter_nd", {none.input({4, 5}), no_indices, none.input({0, 5})}));
}

TEST(LowerQuantize, PerTensorAndPerChannel) {
  Net net;
  Value* scale = net.constant({3}, 0.01, 0.1);
  Value* zero = net.graph.add_constant(Tensor::of<int64_t>(DType::i8, {3}, {0, 3, -5}));
  Value* q = net("quantize_linear", {net.input({2, 3, 4, 4}), scale, zero});
  const Region region = expect_lowers(net.graph, net.fuse({net("dequantize_linear", {q, scale, zero})}), 0.05);
  EXPECT_EQ(region.stages.size(), 1u);
}

TEST(LowerTopK, RanksThenSelection) {
  for (bool largest : {true, false}) {
    Net net;
    Node* node =
        net.node("top_k", {net.input({3, 7, 2}), net.integers({3})}, {{"axis", int64_t{1}}, {"largest", largest}}, 2);
    EXPECT_EQ(expect_lowers(net.graph, node).stages.size(), 2u);
  }
}

TEST(LowerExtraResults, PoolIndicesAndLayerStatistics) {
  for (int64_t order : {0, 1}) {
    Net pool;
    expect_lowers(pool.graph, pool.node("max_pool", {pool.input({2, 3, 7, 6})},
                                        {{"kernel_shape", Ints{3, 2}},
                                         {"strides", Ints{2, 1}},
                                         {"pads", Ints{1, 0, 1, 1}},
                                         {"storage_order", order}},
                                        2));
  }
  Net layer;
  expect_lowers(layer.graph, layer.node("layer_norm", {layer.input({2, 3, 8}), layer.constant({8})}, {}, 3));
}

TEST(LowerShape, WhatFoldingLeavesWhenDimensionsAreSymbolic) {
  Net net;
  const Dim n = Dim::symbol("n");
  Value* shape = net("shape", {net.input({n, 3, Dim::symbol("h")})});
  expect_lowers(net, shape, 1e-9, {{"n", 4}, {"h", 6}});
  Net eye;
  expect_lowers(eye, eye("eye_like", {eye.input({3, 5})}, {{"k", int64_t{1}}}));
}

}  // namespace
}  // namespace opfuse
