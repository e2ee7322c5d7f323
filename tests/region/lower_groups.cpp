// Fused groups: prologues, epilogues, folding of BatchNorm, several stages, and what is declined.
#include <cmath>

#include "lower_support.hpp"

namespace opfuse {
namespace {

using namespace testing_region;

AttrMap same3x3() { return {{"pads", Ints{1, 1, 1, 1}}}; }

TEST(LowerGroup, BatchNormFoldsIntoTheConvolution) {
  Net net;
  Value* y = net("relu", {net.batch_norm(net.conv(net.input({1, 3, 6, 6}), 5, 3, same3x3()))});
  const Node* fused = net.fuse({y});
  const Region region = expect_lowers(net.graph, fused, 1e-6);
  ASSERT_EQ(region.stages.size(), 1u);
  EXPECT_EQ(region.params.size(), 4u) << "x, folded weights, folded bias, y\n" << print(region);
}

TEST(LowerGroup, BatchNormWithoutConstantStatisticsIsAnEpilogue) {
  Net net;
  Value* x = net.conv(net.input({1, 3, 4, 4}), 2, 1);
  Value* variance = net("abs", {net.input({2})});
  Value* y = net("batch_norm", {x, net.constant({2}), net.constant({2}), net.constant({2}), variance});
  expect_lowers(net.graph, net.fuse({y}), 1e-6);
}

TEST(LowerGroup, BatchNormThatIsNotTheOnlyReaderIsNotFolded) {
  Net net;
  Value* x = net.conv(net.input({1, 3, 4, 4}), 2, 1);
  Value* y = net("add", {net.batch_norm(x), x});
  const Region region = expect_lowers(net.graph, net.fuse({y}), 1e-6);
  EXPECT_EQ(region.stages.size(), 1u);
}

TEST(LowerGroup, ResidualAddAndReluAreAnEpilogue) {
  Net net;
  Value* x = net.input({1, 4, 5, 5});
  Value* skip = net.input({1, 4, 5, 5});
  Value* y = net("relu", {net("add", {net.batch_norm(net.conv(x, 4, 3, same3x3())), skip})});
  const Region region = expect_lowers(net.graph, net.fuse({y}), 1e-6);
  ASSERT_EQ(region.stages.size(), 1u);
  EXPECT_EQ(region.stages[0].anchor, Anchor::contraction);
}

TEST(LowerGroup, StemIsAContractionAndAWindow) {
  Net net;
  Value* conv = net.conv(net.input({1, 3, 17, 17}), 8, 7, {{"pads", Ints{3, 3, 3, 3}}, {"strides", Ints{2, 2}}});
  Value* y = net("max_pool", {net("relu", {net.batch_norm(conv)})},
                 {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
  const Region region = expect_lowers(net.graph, net.fuse({y}), 1e-6);
  ASSERT_EQ(region.stages.size(), 2u);
  EXPECT_EQ(region.stages[0].anchor, Anchor::contraction);
  EXPECT_EQ(region.stages[1].anchor, Anchor::window);
  EXPECT_EQ(region.stages[0].outputs[0].param, -1);
}

/// Products, softmax along the last axis, 0 where a row's maximum is -inf, products again; `top` is that maximum.
struct EmptyRows {
  Net net;
  Value *top, *result;

  EmptyRows() {
    Value* scores = net("matmul", {net.input({2, 5, 4}), net.input({2, 4, 7})});
    top = net("reduce_max", {scores, net.integers({2})});
    Value* none = net("equal", {top, net.scalar(-INFINITY)});
    Value* weights = net("where", {none, net.scalar(0), net("softmax", {scores})});
    result = net("matmul", {weights, net.input({2, 7, 3})});
  }
};

TEST(LowerGroup, RowsBetweenProductsThatAskForTheSameMaximumAreOne) {
  EmptyRows rows;
  const Region region = expect_lowers(rows.net.graph, rows.net.fuse({rows.result}), 1e-6);
  ASSERT_EQ(region.stages.size(), 3u) << print(region);
  EXPECT_EQ(region.stages[1].anchor, Anchor::row);
  EXPECT_EQ(region.stages[1].reductions.size(), 2u) << "one maximum, one sum\n" << print(region);
}

TEST(LowerGroup, ARowThatIsReadBehindTheNextRowStays) {
  EmptyRows rows;
  Value* scaled = rows.net("mul", {rows.result, rows.top});
  EXPECT_EQ(expect_lowers(rows.net.graph, rows.net.fuse({scaled}), 1e-6).stages.size(), 4u);
  EmptyRows stored;
  EXPECT_EQ(expect_lowers(stored.net.graph, stored.net.fuse({stored.top, stored.result}), 1e-6).stages.size(), 4u);
}

/// act(x A) * (x B): `act` reads the first product, `gated` is the product of both.
struct Gated {
  Net net;
  Value *x = net.input({2, 5, 7}), *first = net("matmul", {x, net.constant({7, 9})}), *second = nullptr;
  Value* times(Value* act, Value* data, int64_t in = 7) {
    second = net("matmul", {data, net.constant({in, 9})});
    return net("mul", {act, net("add", {second, net.constant({9})})});
  }
};

TEST(LowerGroup, AGatedProductIsOneStageOfTwoSums) {
  Gated g;
  Value* y = g.times(g.net("silu", {g.first}), g.x);
  const Region region = expect_lowers(g.net.graph, g.net.fuse({y}));
  ASSERT_EQ(region.stages.size(), 1u) << print(region);
  EXPECT_EQ(region.stages[0].reductions.size(), 2u);
  EXPECT_EQ(region.params.size(), 5u) << "x, two weights, a bias, y\n" << print(region);
}

TEST(LowerGroup, AGateIsOneStageWhereItsActivationComesLast) {  // in the order of the nodes
  Gated g;
  Value* b = g.net("matmul", {g.x, g.net.constant({7, 9})});
  Value* y = g.net("mul", {b, g.net("sigmoid", {g.first})});
  EXPECT_EQ(expect_lowers(g.net.graph, g.net.fuse({y})).stages.size(), 1u);
}

TEST(LowerGroup, TwoGatesAreOneStageOfThreeSums) {
  Gated g;
  Value* y = g.times(g.net("tanh", {g.times(g.net("silu", {g.first}), g.x)}), g.x);
  const Region region = expect_lowers(g.net.graph, g.net.fuse({y}));
  ASSERT_EQ(region.stages.size(), 1u) << print(region);
  EXPECT_EQ(region.stages[0].reductions.size(), 3u);
}

TEST(LowerGroup, ProductsOfDifferentDataStayTwoStages) {
  Gated g;
  Value* y = g.times(g.net("silu", {g.first}), g.net.input({2, 5, 7}));
  EXPECT_EQ(expect_lowers(g.net.graph, g.net.fuse({y})).stages.size(), 2u);
}

TEST(LowerGroup, AProductThatIsStoredTooIsAStageOfItsOwn) {
  Gated g;
  Value* act = g.net("silu", {g.first});
  Value* y = g.times(act, g.x);
  EXPECT_EQ(expect_lowers(g.net.graph, g.net.fuse({act, y})).stages.size(), 2u);
}

TEST(LowerGroup, AProductThatIsReadElsewhereThanInPlaceIsAStageOfItsOwn) {
  Gated g;
  Value* turned = g.net("transpose", {g.net("silu", {g.first})}, {{"perm", Ints{1, 0, 2}}});
  Value* back = g.net("reshape", {turned, g.net.integers({2, 5, 9})});
  const auto lowered = lower_group(*g.net.fuse({g.times(back, g.x)}));
  const auto* group = std::get_if<LoweredGroup>(&lowered);
  EXPECT_TRUE(!group || group->region.stages.size() >= 2) << print(group->region);
}

TEST(LowerGroup, AProductOfTheFirstOnesResultIsTwoStages) {
  Gated g;
  Value* act = g.net("silu", {g.first});
  Value* y = g.times(act, act, 9);
  EXPECT_EQ(expect_lowers(g.net.graph, g.net.fuse({y})).stages.size(), 2u);
}

TEST(LowerGroup, PaddingGuardsTheWholePrologue) {
  Net net;
  Value* x = net.input({1, 3, 5, 5});
  Value* y = net.conv(net("sigmoid", {net("add", {x, net.constant({3, 1, 1})})}), 4, 3, same3x3());
  const Region region = expect_lowers(net.graph, net.fuse({y}));
  EXPECT_EQ(region.stages.size(), 1u);
}

TEST(LowerGroup, ATransposeAfterAProductMovesItsStore) {
  Net net;
  Value* y = net("matmul", {net.input({2, 3, 4}), net.constant({4, 6})});
  y = net("transpose", {net("reshape", {y, net.integers({2, 3, 2, 3})})}, {{"perm", Ints{0, 2, 1, 3}}});
  const Region region = expect_lowers(net.graph, net.fuse({net("relu", {y})}));
  EXPECT_EQ(region.stages.size(), 1u) << print(region);
}

TEST(LowerGroup, LinearWithBatchNormAndActivation) {
  Net net;
  Value* y = net("gemm", {net.input({3, 5}), net.constant({4, 5}), net.constant({4})}, {{"transB", true}});
  const Region region = expect_lowers(net.graph, net.fuse({net("gelu", {net.batch_norm(y)})}), 1e-6);
  EXPECT_EQ(region.params.size(), 4u);
}

TEST(LowerGroup, SoftmaxWithScaleAndMaskIsOneRow) {
  Net net;
  Value* x = net("mul", {net.input({2, 3, 4}), net.scalar(0.125)});
  Value* y = net("softmax", {net("add", {x, net.input({2, 1, 4})})});
  const Region region = expect_lowers(net.graph, net.fuse({net("mul", {y, net.input({2, 3, 4})})}));
  EXPECT_EQ(region.stages.size(), 1u);
}

/// (x - mean) / sqrt(mean((x - mean)^2) + eps) * scale + shift, the mean over `axis` kept as 1.
struct SpelledNorm {
  Net net;
  Value *mean, *y;
  explicit SpelledNorm(const Shape& shape, int64_t axis, int64_t second_axis) {
    Value* x = net.input(shape);
    mean = net("reduce_mean", {x, net.integers({axis})});
    Value* distance = net("sub", {x, mean});
    Value* variance = net("reduce_mean", {net("pow", {distance, net.scalar(2)}), net.integers({second_axis})});
    Value* normal = net("div", {distance, net("sqrt", {net("add", {variance, net.scalar(1e-5)})})});
    y = net("add", {net("mul", {normal, net.constant({4})}), net.constant({4})});
  }
};

TEST(LowerGroup, ANormInPrimitivesIsOneRow) {
  for (const int64_t axis : {-1, 1}) {
    SpelledNorm norm({2, 3, 4}, axis, axis);
    const Region region = expect_lowers(norm.net.graph, norm.net.fuse({norm.y}));
    ASSERT_EQ(region.stages.size(), 1u) << print(region);
    EXPECT_EQ(region.stages[0].reductions.size(), 2u);
    EXPECT_EQ(region.stages[0].reads.size(), 4u) << print(region);  // x along the row and here, scale, shift
  }
  SpelledNorm open({Dim::symbol("n"), 3, 4}, -1, -1);
  EXPECT_EQ(expect_lowers(open.net.graph, open.net.fuse({open.y}), 1e-9, {{"n", 5}}).stages.size(), 1u);
}

TEST(LowerGroup, ANormOfOneElementReadsTheDistanceAlongItsRow) {
  SpelledNorm norm({3, 1, 4}, 1, 1);
  EXPECT_EQ(expect_lowers(norm.net.graph, norm.net.fuse({norm.y})).stages.size(), 2u);
}

TEST(LowerGroup, RowsStayApartOverDifferentAxesAndWhereAStatisticIsStored) {
  SpelledNorm norm({2, 3, 4}, -1, 1);
  EXPECT_GT(expect_lowers(norm.net.graph, norm.net.fuse({norm.y})).stages.size(), 1u);
  SpelledNorm stored({2, 3, 4}, -1, -1);
  EXPECT_GT(expect_lowers(stored.net.graph, stored.net.fuse({stored.mean, stored.y})).stages.size(), 1u);
}

TEST(LowerGroup, ChainsOfMovementAndArithmeticAreOneMap) {
  Net net;
  Value* x = net("reshape", {net.input({1, 6, 4, 4}), net.integers({1, 2, 3, 4, 4})});
  x = net("transpose", {net("relu", {x})}, {{"perm", Ints{0, 2, 1, 3, 4}}});
  const Region region = expect_lowers(net.graph, net.fuse({net("reshape", {x, net.integers({1, 6, 4, 4})})}));
  ASSERT_EQ(region.stages.size(), 1u);
  EXPECT_EQ(print(region).find('`'), std::string::npos) << "channel shuffle needs no dynamic index\n" << print(region);
}

TEST(LowerGroup, SeveralResultsOfOneGroup) {
  Net net;
  Value* x = net.conv(net.input({1, 3, 4, 4}), 4, 1);
  Value* y = net("relu", {x});
  expect_lowers(net.graph, net.fuse({x, y}));
}

TEST(LowerGroup, TwoProductsAreTwoStages) {
  Net net;
  Value* x = net("gelu", {net("matmul", {net.input({5, 4}), net.constant({4, 8})})});
  const Region region = expect_lowers(net.graph, net.fuse({net("matmul", {x, net.constant({8, 4})})}));
  EXPECT_EQ(region.stages.size(), 2u);
}

TEST(LowerGroup, DeclinesNameTheNode) {
  Net net;
  Node* node = net.node("non_zero", {net.input({4, 4})});
  const Decline why = expect_declines(node);
  EXPECT_EQ(why.code, "no_lowering");
  ASSERT_FALSE(why.evidence.empty());
  EXPECT_NE(why.evidence[0].find("non_zero"), std::string::npos);
}

TEST(LowerGroup, ElementwiseOnBooleansAndIntegers) {
  Net net;
  Value* a = net.input({2, 3}, DType::i64);
  Value* b = net.input({3}, DType::i64);
  Value* mask = net("and", {net("less", {a, b}), net("equal", {a, a})});
  expect_lowers(net.graph, net.fuse({net("where", {mask, net("add", {a, b}), b})}));
}

}  // namespace
}  // namespace opfuse
