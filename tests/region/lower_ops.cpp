// Every operator family lowers to a region that computes what the operator's reference computes.
#include <fmt/format.h>

#include "lower_support.hpp"

namespace opfuse {
namespace {

using namespace testing_region;

AttrMap conv_attrs(Ints pads, Ints strides, Ints dilations, int64_t group) {
  return {{"pads", pads}, {"strides", strides}, {"dilations", dilations}, {"group", group}};
}

TEST(LowerConv, PaddingStridesDilationsAndGroups) {
  struct Case {
    Shape x;
    int64_t out, kernel;
    AttrMap attrs;
  };
  const Case cases[] = {
      {{1, 3, 7, 7}, 5, 3, conv_attrs({1, 1, 1, 1}, {1, 1}, {1, 1}, 1)},
      {{2, 3, 8, 5}, 4, 3, conv_attrs({0, 2, 1, 0}, {2, 1}, {1, 2}, 1)},
      {{1, 4, 6, 6}, 6, 3, conv_attrs({1, 1, 1, 1}, {2, 2}, {1, 1}, 2)},
      {{1, 5, 9, 9}, 5, 3, conv_attrs({1, 1, 1, 1}, {1, 1}, {1, 1}, 5)},
      {{1, 4, 5, 5}, 8, 1, conv_attrs({}, {}, {}, 1)},
      {{1, 4, 6, 6}, 8, 3, conv_attrs({1, 1, 1, 1}, {1, 1}, {1, 1}, 4)},
      {{1, 1, 1, 1}, 1, 1, conv_attrs({}, {}, {}, 1)},
      {{2, 3, 11}, 4, 5, conv_attrs({2, 1}, {3}, {1}, 1)},
      {{1, 2, 4, 5, 6}, 3, 3, conv_attrs({1, 1, 1, 1, 1, 1}, {1, 2, 1}, {1, 1, 1}, 1)},
      {{1, 3, 13, 13}, 4, 3, conv_attrs({}, {3, 3}, {2, 2}, 1)},
  };
  for (const Case& c : cases) {
    Net net;
    const Region region = expect_lowers(net, net.conv(net.input(c.x), c.out, c.kernel, c.attrs));
    ASSERT_EQ(region.stages.size(), 1u);
  }
}

TEST(LowerConv, OneFilterPerChannelIsAWindowOthersAreContractions) {
  Net depthwise, grouped;
  EXPECT_EQ(expect_lowers(depthwise, depthwise.conv(depthwise.input({1, 6, 5, 5}), 6, 3, conv_attrs({}, {}, {}, 6)))
                .stages[0]
                .anchor,
            Anchor::window);
  EXPECT_EQ(expect_lowers(grouped, grouped.conv(grouped.input({1, 6, 5, 5}), 12, 3, conv_attrs({}, {}, {}, 6)))
                .stages[0]
                .anchor,
            Anchor::contraction);
}

TEST(LowerConv, ReadsAreGuardedOnlyWhereTheWindowLeavesTheInput) {
  Net inside, outside;
  const Region a = expect_lowers(inside, inside.conv(inside.input({1, 2, 7, 7}), 3, 3, conv_attrs({}, {2, 2}, {}, 1)));
  EXPECT_EQ(print(a).find("select(in"), std::string::npos);
  const Region b =
      expect_lowers(outside, outside.conv(outside.input({1, 2, 7, 7}), 3, 3, conv_attrs({0, 0, 1, 1}, {1, 1}, {}, 1)));
  EXPECT_NE(print(b).find("select(in"), std::string::npos);
}

TEST(LowerConv, SymbolicBatchAndSpatialDimensions) {
  Net net;
  const Dim n = Dim::symbol("n"), h = Dim::symbol("h");
  Value* y = net.conv(net.input({n, 3, h, 9}), 4, 3, conv_attrs({1, 1, 1, 1}, {2, 2}, {1, 1}, 1));
  const Region region = expect_lowers(net, y, 1e-9, {{"n", 3}, {"h", 11}});
  EXPECT_EQ(region.symbols(), (std::set<std::string>{"h", "n"}));
}

TEST(LowerGemm, TransposesScalesAndBias) {
  for (int variant = 0; variant < 16; ++variant) {
    Net net;
    const bool ta = variant & 1, tb = variant & 2;
    std::vector<Value*> operands = {net.input(ta ? Shape{5, 3} : Shape{3, 5}),
                                    tb ? net.constant({7, 5}) : net.constant({5, 7})};
    if (variant & 4) operands.push_back(variant & 8 ? net.constant({3, 1}) : net.constant({7}));
    AttrMap attrs = {{"transA", ta}, {"transB", tb}};
    if (variant & 8) attrs.insert(attrs.end(), {{"alpha", 0.5}, {"beta", 2.0}});
    expect_lowers(net, net("gemm", operands, attrs));
  }
}

TEST(LowerMatMul, AnyRankWithBroadcastBatches) {
  const std::pair<Shape, Shape> cases[] = {{{3, 4}, {4, 5}},
                                           {{4}, {4, 5}},
                                           {{3, 4}, {4}},
                                           {{4}, {4}},
                                           {{2, 3, 4}, {4, 5}},
                                           {{2, 3, 4}, {2, 4, 5}},
                                           {{2, 1, 3, 4}, {6, 4, 5}},
                                           {{2, 1, 4}, {1, 4, 1}},
                                           {{4}, {2, 4, 5}},
                                           {{2, 3, 4}, {4}}};
  for (const auto& [a, b] : cases) {
    Net net;
    Value* left = net.input(a);
    expect_lowers(net, net("matmul", {left, net.input(b)}));
  }
}

TEST(LowerPool, MaxAndAverageInEveryMode) {
  for (std::string_view op : {"max_pool", "average_pool"})
    for (int variant = 0; variant < 16; ++variant) {
      const bool ceil = variant & 1, include = variant & 2, padded = variant & 4, dilated = variant & 8;
      if (include && op == "max_pool") continue;
      AttrMap attrs = {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 3}}, {"ceil_mode", ceil}};
      if (padded) attrs.emplace_back("pads", Ints{1, 0, 1, 1});
      if (dilated) attrs.emplace_back("dilations", Ints{2, 1});
      if (include) attrs.emplace_back("count_include_pad", true);
      for (const Shape& x : {Shape{1, 2, 7, 8}, Shape{2, 1, 6, 5}, Shape{1, 3, 13, 11}}) {
        Net net;
        expect_lowers(net, net(op, {net.input(x)}, attrs));
      }
    }
}

/// Rounded up, the last window may leave the input at some sizes and not at others.
TEST(LowerPool, OpenExtentsInEveryMode) {
  for (std::string_view op : {"max_pool", "average_pool", "lp_pool"})
    for (int variant = 0; variant < 16; ++variant) {
      const bool ceil = variant & 1, include = variant & 2, padded = variant & 4, same = variant & 8;
      if ((include && op != "average_pool") || (same && (padded || ceil))) continue;
      AttrMap attrs = {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 3}}};
      if (ceil) attrs.emplace_back("ceil_mode", true);
      if (padded) attrs.emplace_back("pads", Ints{0, 1, 2, 0});
      if (same) attrs.emplace_back("auto_pad", "SAME_UPPER");
      if (include) attrs.emplace_back("count_include_pad", true);
      for (int64_t extent = 3; extent < 9; ++extent) {
        Net net;
        SCOPED_TRACE(fmt::format("{} {} at {}", op, variant, extent));
        expect_lowers(net, net(op, {net.input({1, 2, Dim::symbol("h"), Dim::symbol("w")})}, attrs), 1e-9,
                      {{"h", extent}, {"w", 11 - extent}});
      }
    }
}

TEST(LowerPool, WindowsRoundedDownNeedNoGuard) {
  for (const bool ceil : {false, true}) {
    Net net;
    Value* x = net.input({1, 2, Dim::symbol("h"), 8});
    const Region region = expect_lowers(
        net, net("max_pool", {x}, {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 2}}, {"ceil_mode", ceil}}), 1e-9,
        {{"h", 6}});
    EXPECT_EQ(print(region).find("in0") != std::string::npos, ceil) << print(region);
  }
}

TEST(LowerPool, GlobalAndNormPools) {
  for (std::string_view op : {"global_average_pool", "global_max_pool", "global_lp_pool"}) {
    Net net;
    EXPECT_EQ(expect_lowers(net, net(op, {net.input({2, 3, 5, 7})})).stages[0].anchor, Anchor::row);
  }
  Net net;
  expect_lowers(net, net("lp_pool", {net.input({1, 2, 5, 5})}, {{"kernel_shape", Ints{2, 2}}, {"p", int64_t{3}}}));
}

TEST(LowerElementwise, LawsBroadcastingAndScalars) {
  for (std::string_view op : {"relu", "sigmoid", "tanh", "gelu", "hard_swish", "silu", "elu", "exp", "neg", "abs"}) {
    Net net;
    expect_lowers(net, net(op, {net.input({2, 3, 5})}));
  }
  for (std::string_view op : {"add", "sub", "mul", "div", "max", "min"}) {
    Net net;
    Value* x = net.input({2, 3, 5});
    expect_lowers(net, net(op, {x, net.constant({3, 1}, 1, 2)}));
  }
  Net net;
  const Region region = expect_lowers(net, net("mul", {net.input({4, 1}), net.scalar(0.5)}));
  EXPECT_EQ(region.params.size(), 2u) << "a scalar constant is part of the expression";
  Net where;
  Value* x = where.input({2, 3});
  Value* y = where.input({3});
  Value* less = where("less", {x, y});
  where.graph.set_outputs({where("where", {less, x, y})});
  expect_lowers(where.graph, where.fuse({where.graph.nodes().back()->output()}));
}

TEST(LowerReduce, AllLawsAndAxes) {
  for (std::string_view op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_l1",
                              "reduce_l2", "reduce_log_sum_exp", "reduce_sum_square"})
    for (const Ints& axes : {Ints{-1}, Ints{0}, Ints{1, 2}, Ints{0, 2}, Ints{}})
      for (bool keep : {false, true}) {
        Net net;
        expect_lowers(net, net(op, {net.input({3, 4, 5})}, {{"axes", axes}, {"keepdims", keep}}));
      }
}

TEST(LowerReduce, SoftmaxFamily) {
  for (std::string_view op : {"softmax", "log_softmax", "hardmax"})
    for (int64_t axis : {0, 1, -1}) {
      Net net;
      expect_lowers(net, net(op, {net.input({3, 4, 5})}, {{"axis", axis}}));
    }
  Net net;
  expect_lowers(net, net("softmax", {net.input({3, 4, 5})}, {{"axis", int64_t{1}}, {"flatten", true}}));
}

TEST(LowerReduce, ArgMaxArgMinAndRunningSums) {
  for (std::string_view op : {"arg_max", "arg_min"})
    for (bool last : {false, true}) {
      Net net;
      expect_lowers(net, net(op, {net.input({3, 7})}, {{"axis", int64_t{1}}, {"select_last_index", last}}));
    }
  for (bool reverse : {false, true})
    for (bool exclusive : {false, true}) {
      Net net;
      Value* x = net.input({3, 4});
      expect_lowers(net, net("cum_sum", {x, net.integers({1})}, {{"reverse", reverse}, {"exclusive", exclusive}}));
    }
}

TEST(LowerNorm, BatchLayerInstanceGroupAndLocalResponse) {
  Net batch;
  expect_lowers(batch, batch.batch_norm(batch.input({2, 3, 4, 5})), 1e-6);
  Net layer;
  expect_lowers(layer, layer("layer_norm", {layer.input({2, 3, 8}), layer.constant({8}), layer.constant({8})}));
  Net layer2;
  expect_lowers(layer2,
                layer2("layer_norm", {layer2.input({2, 3, 4}), layer2.constant({3, 4})}, {{"axis", int64_t{1}}}));
  Net instance;
  expect_lowers(instance, instance("instance_norm",
                                   {instance.input({2, 3, 4, 5}), instance.constant({3}), instance.constant({3})}));
  Net group;
  expect_lowers(group, group("group_norm", {group.input({2, 6, 3, 4}), group.constant({6}), group.constant({6})},
                             {{"num_groups", int64_t{3}}}));
  for (int64_t size : {3, 4, 5}) {
    Net lrn;
    expect_lowers(lrn, lrn("lrn", {lrn.input({1, 7, 3, 3})}, {{"size", size}, {"alpha", 0.5}}));
  }
}

}  // namespace
}  // namespace opfuse
