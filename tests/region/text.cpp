// The region form on its own: text round trip, verifier, interpreter and cost of hand-made regions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "opfuse/error.hpp"
#include "region/index_map.hpp"
#include "region/region.hpp"

namespace opfuse {
namespace {

/// 3x3 max-pool, stride 2, pad 1 over f32[1,2,5,5].
Region pool_region() {
  Region region;
  region.params = {{ParamRole::input, {DType::f32, Shape{1, 2, 5, 5}}},
                   {ParamRole::output, {DType::f32, Shape{1, 2, 3, 3}}}};
  Stage stage;
  stage.anchor = Anchor::window;
  stage.domain = {1, 2, 3, 3};
  stage.reduce = {3, 3};
  IndexMap map = IndexMap::identity(2);
  map.dims.push_back(IndexExpr{{{2, 2}, {1, 4}}, -1, {}});
  map.dims.push_back(IndexExpr{{{2, 3}, {1, 5}}, -1, {}});
  stage.reads.push_back({-1, 0, map});
  const Expr guarded = Expr::make(
      ExprOp::select, {Expr::in_bounds(0), Expr::read(0, DType::f32), Expr::constant(DType::f32, -INFINITY)});
  stage.reductions.push_back({ReduceKind::max, guarded});
  stage.outputs.push_back({1, Expr::result(0, DType::f32), IndexMap::identity(4), Shape{1, 2, 3, 3}, DType::f32});
  region.stages.push_back(stage);
  return region;
}

TEST(RegionText, PrintsAndParsesBack) {
  const Region region = pool_region();
  const Region again = parse_region(print(region));
  EXPECT_EQ(region, again) << print(region) << "\n" << print(again);
  EXPECT_EQ(region.hash(), again.hash());
}

TEST(RegionText, KeepsDivisionModuloSymbolsAndDynamicIndices) {
  Region region;
  const Dim n = Dim::symbol("n");
  region.params = {{ParamRole::input, {DType::f32, Shape{n, 6}}},
                   {ParamRole::input, {DType::i64, Shape{4}}},
                   {ParamRole::output, {DType::f32, Shape{n * Dim(2), 4}}}};
  Stage stage;
  stage.domain = {n * Dim(2), 4};
  stage.reads.push_back({-1, 1, {{IndexExpr{{{1, 1}}, 0, {}}}}});
  IndexMap map;
  map.dims.push_back(IndexExpr{{{1, 0, 2, n}}, 0, {}});
  map.dims.push_back(IndexExpr{{}, 0, Expr::read(0, DType::i64)});
  stage.reads.push_back({-1, 0, map});
  IndexMap store = IndexMap::identity(2);
  store.dims[0].terms[0].coef = n + Dim(1);
  store.dims[1].offset = n;
  stage.outputs.push_back({2, Expr::read(1, DType::f32), store, region.params[2].type.shape, DType::f32});
  region.stages.push_back(stage);
  const Region again = parse_region(print(region));
  EXPECT_EQ(region, again) << print(region) << "\n" << print(again);
  EXPECT_EQ(region.symbols(), std::set<std::string>{"n"});
}

TEST(RegionText, BadTextIsAnErrorWithItsLine) {
  for (const char* text :
       {"", "stage map", "region\nparam", "region\nfoo", "region\nstage map\n  read param x at [a0]",
        "region\nstage map\n  read param 0 at [b0]", "region\nstage map\n  output local f32[1] at [a0"}) {
    try {
      parse_region(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.diagnostic().name, "bad_text") << error.what();
    }
  }
}

TEST(RegionVerifier, AcceptsAPoolAndNamesEveryProblem) {
  EXPECT_NO_THROW(verify(pool_region()));
  Region broken = pool_region();
  broken.stages[0].reads[0].map.dims.pop_back();
  broken.stages[0].outputs[0].value = Expr::result(1, DType::f32);
  try {
    verify(broken);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("has 3 indices"));
    EXPECT_THAT(error.what(), testing::HasSubstr("result(1) before it is known"));
  }
}

TEST(RegionVerifier, RejectsReadsOfLaterStagesAndUnstoredOutputs) {
  Region broken = pool_region();
  broken.stages[0].reads[0].stage = 0;
  EXPECT_THROW(verify(broken), Error);
  broken = pool_region();
  broken.params.push_back({ParamRole::output, {DType::f32, Shape{1}}});
  EXPECT_THROW(verify(broken), Error);
  broken = pool_region();
  broken.stages[0].anchor = Anchor::map;
  EXPECT_THROW(verify(broken), Error);
}

TEST(RegionInterpreter, PoolsWithPadding) {
  Tensor x(DType::f32, {1, 2, 5, 5});
  for (int64_t i = 0; i < x.elements(); ++i) x.set_real(i, static_cast<double>((i * 7) % 11) - 20);
  const Tensor y = interpret(pool_region(), {x}, {}, Precision::exact).at(0);
  ASSERT_EQ(y.dtype(), DType::f64);
  for (int64_t c = 0; c < 2; ++c)
    for (int64_t p = 0; p < 3; ++p)
      for (int64_t q = 0; q < 3; ++q) {
        double want = -INFINITY;
        for (int64_t i = std::max<int64_t>(0, 2 * p - 1); i <= std::min<int64_t>(4, 2 * p + 1); ++i)
          for (int64_t j = std::max<int64_t>(0, 2 * q - 1); j <= std::min<int64_t>(4, 2 * q + 1); ++j)
            want = std::max(want, x.real((c * 5 + i) * 5 + j));
        EXPECT_EQ(y.real((c * 3 + p) * 3 + q), want);
      }
}

TEST(RegionInterpreter, AnUnguardedReadOutsideItsTensorIsAnError) {
  Region region = pool_region();
  region.stages[0].reductions[0].value = Expr::read(0, DType::f32);
  EXPECT_THROW(interpret(region, {Tensor(DType::f32, {1, 2, 5, 5})}, {}, Precision::exact), Error);
}

TEST(RegionCostModel, CountsOnlyTapsInsideTheInput) {
  // 3 outputs per axis over 5 inputs, stride 2, pad 1: 2 + 3 + 2 taps inside; one maximum for each.
  const RegionCost cost = cost_of(pool_region());
  EXPECT_EQ(cost.flops, 2 * 7 * 7);
  EXPECT_EQ(cost.bytes_read, 2 * 25 * 4);
  EXPECT_EQ(cost.bytes_written, 2 * 9 * 4);
}

TEST(RegionCostModel, CountsAPrologueOncePerElementAndAValueStoredTwiceOnce) {
  const RegionCost cost = cost_of(parse_region(R"(region
param input f32[2,8,6]
param input f32[2,8,1]
param constant f32[4,8]
param output f32[2,4,6]
param output f32[2,4,6]
stage contraction
  domain [2,4,6]
  reduce [8]
  read param 0 at [a0, a3, a2]
  read param 1 at [a0, a3, 0]
  read param 2 at [a1, a3]
  reduction sum mul(mul(r0, r1), r2)
  output param 3 f32[2,4,6] at [a0, a1, a2] = max(s0, 0)
  output param 4 f32[2,4,6] at [a0, a1, a2] = max(s0, 0)
)"));
  EXPECT_EQ(cost.flops, 2 * (2 * 4 * 6 * 8) + 2 * 8 * 6 + 2 * 4 * 6);
}

TEST(RegionCostModel, CountsAProductOfCodesAsOneOfNumbers) {
  const RegionCost cost = cost_of(parse_region(R"(region
param input u8[4,8]
param constant i8[8,6]
param output i32[4,6]
stage contraction
  domain [4,6]
  reduce [8]
  read param 0 at [a0, a2]
  read param 1 at [a2, a1]
  reduction sum mul(cast<i32>(r0:u8), cast<i32>(r1:i8))
  output param 2 i32[4,6] at [a0, a1] = s0:i32
)"));
  EXPECT_EQ(cost.flops, 2 * (4 * 6 * 8));
}

TEST(IndexMaps, ReshapesSplitAndMergeThroughTerms) {
  const IndexMap split = reshape_map(Shape{2, 12}, Shape{2, 3, 4});
  EXPECT_FALSE(has_dynamic(split));
  EXPECT_EQ(split.dims[1].terms, (std::vector<IndexTerm>{{1, 1, 4, 0}}));
  EXPECT_EQ(split.dims[2].terms, (std::vector<IndexTerm>{{1, 1, 1, 4}}));
  const IndexMap merge = reshape_map(Shape{2, 3, 4}, Shape{2, 12});
  EXPECT_EQ(merge.dims[1].terms, (std::vector<IndexTerm>{{4, 1}, {1, 2}}));
  // 4x6 seen as 8x3: refined into 4 x 2 x 3.
  EXPECT_FALSE(has_dynamic(reshape_map(Shape{4, 6}, Shape{8, 3})));
  EXPECT_TRUE(has_dynamic(reshape_map(Shape{4, 9}, Shape{6, 6})));
}

TEST(IndexMaps, ASplitAndItsMergeComposeToTheIdentity) {
  const Shape whole{5, 12}, parts{5, 3, 4};
  const IndexMap there = reshape_map(parts, whole), back = reshape_map(whole, parts);
  EXPECT_EQ(compose(there, back, whole.dims), IndexMap::identity(2));
  EXPECT_EQ(compose(back, there, parts.dims), IndexMap::identity(3));
}

TEST(IndexMaps, SymbolicDimensionsMergeAndSplit) {
  const Dim b = Dim::symbol("b"), s = Dim::symbol("s");
  EXPECT_FALSE(has_dynamic(reshape_map(Shape{b * s, 768}, Shape{b, s, 768})));
  EXPECT_FALSE(has_dynamic(reshape_map(Shape{b, s, 768}, Shape{b * s, 768})));
  EXPECT_FALSE(has_dynamic(reshape_map(Shape{b, s, 12, 64}, Shape{b, s, 768})));
  EXPECT_FALSE(has_dynamic(reshape_map(Shape{b, 2048}, Shape{b, 2048, 1, 1})));
}

TEST(IndexMaps, BroadcastingReadsUnitDimensionsAtZero) {
  const IndexMap map = IndexMap::broadcast(Shape{3, 1}, Shape{2, 3, 4});
  ASSERT_EQ(map.dims.size(), 2u);
  EXPECT_EQ(map.dims[0].terms, (std::vector<IndexTerm>{{1, 1}}));
  EXPECT_TRUE(map.dims[1].terms.empty());
}

}  // namespace
}  // namespace opfuse
