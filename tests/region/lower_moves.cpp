// Movement of elements: reshapes, slices, concatenation, padding, indexed reads, resizing.
#include "lower_support.hpp"

namespace opfuse {
namespace {

using namespace testing_region;

TEST(LowerMove, ReshapesIncludingThoseWithoutACommonRefinement) {
  for (const auto& [from, to] : std::vector<std::pair<Shape, Ints>>{{{2, 3, 4}, {6, 4}},
                                                                    {{2, 12}, {2, 3, 4}},
                                                                    {{4, 6}, {8, 3}},
                                                                    {{4, 9}, {6, 6}},
                                                                    {{1, 8, 1, 1}, {1, 8}},
                                                                    {{5}, {5, 1, 1}}}) {
    Net net;
    Value* x = net.input(from);
    expect_lowers(net, net("reshape", {x, net.integers(to)}));
  }
}

TEST(LowerMove, TransposeExpandSqueezeUnsqueezeFlatten) {
  Net transpose;
  expect_lowers(transpose, transpose("transpose", {transpose.input({2, 3, 4, 5})}, {{"perm", Ints{0, 3, 1, 2}}}));
  Net expand;
  Value* x = expand.input({3, 1});
  expect_lowers(expand, expand("expand", {x, expand.integers({2, 3, 4})}));
  Net flatten;
  expect_lowers(flatten, flatten("flatten", {flatten.input({2, 3, 4})}, {{"axis", int64_t{2}}}));
}

TEST(LowerMove, SlicesForwardsBackwardsAndClamped) {
  struct Case {
    Ints starts, ends, axes, steps;
  };
  for (const Case& c : {Case{{1}, {3}, {0}, {1}}, Case{{-3}, {1000}, {1}, {2}}, Case{{4}, {-100}, {1}, {-2}},
                        Case{{0, 1}, {2, 4}, {0, 1}, {1, 1}}}) {
    Net net;
    Value* x = net.input({4, 6});
    expect_lowers(net, net("slice", {x, net.integers(c.starts), net.integers(c.ends), net.integers(c.axes),
                                     net.integers(c.steps)}));
  }
}

/// BERT's position ids: as many as there are tokens.
TEST(LowerMove, SlicesToAPositionThatFollowsFromShapes) {
  for (const int64_t tokens : {1, 5, 9, 12}) {
    Net net;
    Value* x = net.input({2, Dim::symbol("tokens")});
    Value* table = net.input({1, 9});
    Value* count = net("gather", {net("shape", {x}), net.integers({1})});
    Value* ids = net("slice", {table, net.integers({0}), count, net.integers({1})});
    expect_lowers(net.graph, ids->producer, 1e-9, {{"tokens", tokens}});
    Net rest;
    x = rest.input({2, Dim::symbol("tokens")});
    table = rest.input({1, 9});
    count = rest("gather", {rest("shape", {x}), rest.integers({1})});
    ids = rest("slice", {table, count, rest.integers({1000}), rest.integers({1})});
    expect_lowers(rest.graph, ids->producer, 1e-9, {{"tokens", tokens}});
  }
}

/// No coordinate of an empty value is inside, so nothing is read, not even once for all rows.
TEST(LowerMove, ReshapeOfNothingIsReadByNobody) {
  Net net;
  Value* rows = net("reshape", {net.input({1, 0, 2, 1}), net.integers({1, 0, 2})}, {{"allowzero", int64_t{1}}});
  expect_lowers(net.graph, net.fuse({net("matmul", {rows, net.constant({2, 4})})}));
}

TEST(LowerMove, SplitHasOneStagePerResult) {
  Net net;
  Value* x = net.input({2, 7, 3});
  Node* split = net.node("split", {x, net.integers({2, 4, 1})}, {{"axis", int64_t{1}}}, 3);
  expect_lowers(net.graph, split);
}

TEST(LowerMove, ConcatAlongEveryAxis) {
  for (int64_t axis : {0, 1, -1}) {
    Net net;
    std::vector<Value*> parts;
    for (int64_t size : {2, 1, 3}) {
      Shape shape{2, 2, 2};
      shape[axis < 0 ? 2 : static_cast<size_t>(axis)] = size;
      parts.push_back(net.input(shape));
    }
    expect_lowers(net, net("concat", parts, {{"axis", axis}}));
  }
}

/// Operands that move elements themselves: the coordinate says which it is, their reads may be inside anywhere.
TEST(LowerMove, ConcatOfPiecesOfOneValueIsOneStage) {
  Net net;
  Value* x = net.input({2, 9});
  const auto piece = [&](int64_t from, int64_t to) {
    return net("slice", {x}, {{"axes", Ints{1}}, {"starts", Ints{from}}, {"ends", Ints{to}}});
  };
  Value* y = net("concat", {net("neg", {piece(5, 8)}), piece(1, 4), net.constant({2, 2}), piece(0, 9)},
                 {{"axis", int64_t{1}}});
  const Region region = expect_lowers(net.graph, net.fuse({y}));
  ASSERT_EQ(region.stages.size(), 1u);
  EXPECT_EQ(region.stages[0].anchor, Anchor::map);
}

Value* rolled(Net& net, Value* x, int64_t axis, int64_t shift, int64_t from_end = 0) {
  const auto piece = [&](int64_t from, int64_t to) {
    return net("slice", {x}, {{"axes", Ints{axis}}, {"starts", Ints{from}}, {"ends", Ints{to}}});
  };
  return net("concat", {piece(shift, 100), piece(0, shift - from_end)}, {{"axis", axis}});
}

size_t reads_of(const Region& region) { return region.stages.at(0).reads.size(); }

/// Rolls along two axes, as shifted windows have them: coordinates wrap around, so each element is read once.
TEST(LowerMove, ARollIsOneRead) {
  Net net;
  Value* y = rolled(net, rolled(net, net.input({6, 9, 2}), 0, 2), 1, 3);
  const Region region = expect_lowers(net.graph, net.fuse({net("reshape", {y, net.integers({2, 27, 2})})}));
  ASSERT_EQ(region.stages.size(), 1u);
  EXPECT_EQ(region.stages[0].anchor, Anchor::map);
  EXPECT_EQ(reads_of(region), 1u);
}

TEST(LowerMove, ARollOfWindowsIsPartOfASum) {
  Net net;
  Value* apart = net("reshape", {net.input({4, 4, 2}), net.integers({2, 2, 2, 2, 2})});
  Value* whole = net("reshape", {net("transpose", {apart}, {{"perm", Ints{0, 2, 1, 3, 4}}}), net.integers({4, 4, 2})});
  Value* y = net("add", {net.input({4, 4, 2}), rolled(net, rolled(net, whole, 0, 3), 1, 1)});
  const Region region = expect_lowers(net.graph, net.fuse({y}));
  EXPECT_EQ(region.stages.size(), 1u);
  EXPECT_EQ(reads_of(region), 2u);
}

/// Parts of a concatenation are asked for beyond their ends, where they are not chosen.
TEST(LowerMove, ARollIsAPartOfAConcatenation) {
  Net net;
  Value* y = net("concat", {net.input({3, 2}), rolled(net, net.input({7, 2}), 0, 3), net.input({2, 2})},
                 {{"axis", int64_t{0}}});
  EXPECT_EQ(expect_lowers(net.graph, net.fuse({y})).stages.size(), 1u);
}

TEST(LowerMove, WhatIsNoRollReadsItsPieces) {
  Net last;  // its elements lie side by side
  EXPECT_EQ(reads_of(expect_lowers(last.graph, last.fuse({rolled(last, last.input({3, 9}), 1, 4)}))), 2u);
  Net less;  // an element is left out
  EXPECT_EQ(reads_of(expect_lowers(less.graph, less.fuse({rolled(less, less.input({9, 3}), 0, 4, 1)}))), 2u);
}

TEST(LowerMove, ConcatOfAPieceReadAtAComputedPlaceIsDeclined) {
  Net net;
  Value* row = net("gather", {net.input({7, 4}), net.input({3}, DType::i64)});
  const Decline why = expect_declines(net.fuse({net("concat", {row, net.input({2, 4})}, {{"axis", int64_t{0}}})}));
  EXPECT_EQ(why.code, "padded_prologue");
}

TEST(LowerMove, PadsInEveryModeAndCuts) {
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    Net net;
    Value* x = net.input({2, 4, 5});
    expect_lowers(net, net("pad", {x, net.integers({0, 2, 1, 0, 1, 3})}, {{"mode", std::string(mode)}}));
  }
  Net cut;
  Value* x = cut.input({4, 5});
  expect_lowers(cut, cut("pad", {x, cut.integers({1, -1, -2, 0}), cut.scalar(2.5)}));
}

TEST(LowerMove, TileDepthToSpaceAndBack) {
  Net tile;
  Value* x = tile.input({2, 3});
  expect_lowers(tile, tile("tile", {x, tile.integers({2, 3})}));
  for (const char* mode : {"DCR", "CRD"}) {
    Net net;
    expect_lowers(net, net("depth_to_space", {net.input({1, 8, 2, 3})},
                           {{"blocksize", int64_t{2}}, {"mode", std::string(mode)}}));
  }
  Net back;
  expect_lowers(back, back("space_to_depth", {back.input({1, 3, 4, 6})}, {{"blocksize", int64_t{2}}}));
}

TEST(LowerGather, RowsElementsAndTuples) {
  Net rows;
  Value* table = rows.constant({7, 4});
  expect_lowers(rows, rows("gather", {table, rows.input({2, 3}, DType::i64)}));
  Net one;
  Value* x = one.input({3, 4});
  expect_lowers(one, one("gather", {x, one.graph.add_constant(Tensor::of<int64_t>(DType::i64, {}, {-1}))},
                         {{"axis", int64_t{1}}}));
  Net elements;
  Value* data = elements.input({3, 4});
  expect_lowers(elements,
                elements("gather_elements", {data, elements.input({3, 2}, DType::i64)}, {{"axis", int64_t{1}}}));
}

/// Windows that overlap, a step back, and one index out of line, which has to be read.
TEST(LowerGather, AffineConstantIndicesAreNotRead) {
  const auto lowered = [](const std::vector<int64_t>& indices, std::vector<int64_t> sizes) {
    Net net;
    Value* x = net.input({2, 12});
    Value* at = net.graph.add_constant(Tensor::of<int64_t>(DType::i64, std::move(sizes), indices));
    return expect_lowers(net, net("gather", {x, at}, {{"axis", int64_t{1}}})).params.size();
  };
  EXPECT_EQ(lowered({0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7}, {3, 4}), 2U);
  EXPECT_EQ(lowered({11, 10, -3, 8}, {4}), 2U);
  EXPECT_EQ(lowered({0, 1, 2, 3, 2, 3, 4, 6}, {2, 4}), 3U);
  EXPECT_EQ(lowered({0, 1, 2, 4, 3, 4}, {3, 2}), 3U);
}

TEST(LowerResize, EveryModeInEveryCoordinateMode) {
  for (const char* coordinates : {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                  "half_pixel_symmetric", "tf_half_pixel_for_nn"})
    for (const char* mode : {"nearest", "linear", "cubic"})
      for (const Ints& size : {Ints{1, 2, 8, 10}, Ints{1, 2, 7, 3}, Ints{1, 2, 1, 5}}) {
        Net net;
        Value* x = net.input({1, 2, 4, 5});
        expect_lowers(net,
                      net("resize", {x, nullptr, nullptr, net.integers(size)},
                          {{"mode", std::string(mode)}, {"coordinate_transformation_mode", std::string(coordinates)}}),
                      1e-6);
      }
}

TEST(LowerResize, WeightsOfIntegersAreReal) {
  for (const char* mode : {"linear", "cubic"}) {
    Net net;
    Value* x = net.input({1, 2, 4, 5}, DType::i32);
    expect_lowers(net, net("resize", {x, nullptr, nullptr, net.integers({1, 2, 7, 8})}, {{"mode", std::string(mode)}}));
  }
}

TEST(LowerResize, DoublingANearestMapIsAnIndexTermNotATable) {
  Net net;
  Value* x = net.input({1, 2, 4, 5});
  const Region region = expect_lowers(
      net, net("resize", {x, nullptr, net.graph.add_constant(Tensor::of<double>(DType::f32, {4}, {1, 1, 2, 2}))},
               {{"mode", std::string("nearest")},
                {"coordinate_transformation_mode", std::string("asymmetric")},
                {"nearest_mode", std::string("floor")}}));
  EXPECT_EQ(region.params.size(), 2u) << print(region);
}

}  // namespace
}  // namespace opfuse
