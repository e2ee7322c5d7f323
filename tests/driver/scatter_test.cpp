// Indexed writes: boxes of constant indices are one map, others a copy and a scatter that keeps the order of updates.
#include <fmt/format.h>

#include "driver/runs_everywhere.hpp"

namespace opfuse {
namespace {

using test::expect_runs;

std::vector<std::string> anchors(const Program& program) {
  std::vector<std::string> names;
  for (const Launch& launch : program.launches)
    names.emplace_back(launch.region.stages[0].anchor == Anchor::scatter ? "scatter" : "other");
  return names;
}

/// indices [1,3,4,2] of a 3 x 4 box at (2, 3), steps of (2, 1).
TEST(Scatter, ABoxOfConstantIndicesMovesElements) {
  std::string indices;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) indices += fmt::format("{}{},{}", indices.empty() ? "" : ",", 2 + 2 * i, j - 6);
  for (const char* law : {"none", "add", "max"}) {
    const Program program = expect_runs(fmt::format(R"(graph (%x: f32[9,9,5], %u: f32[1,3,4,5]) {{
      %i = const dense<{}> : i64[1,3,4,2]
      %s = scatter_nd(%x, %i, %u) {{reduction = "{}"}}
      %y = relu(%s)
      return %y
    }})",
                                                    indices, law));
    EXPECT_THAT(anchors(program), testing::Not(testing::Contains("scatter")));
  }
}

/// Equal, negative and unordered indices: the last one wins, sums are rounded in the order of the updates.
TEST(Scatter, UpdatesOfOneElementKeepTheirOrder) {
  for (const char* law : {"none", "add", "mul", "max", "min"})
    for (const char* type : {"f32", "f64", "i64", "i32", "u8"}) {
      const Program program = expect_runs(fmt::format(R"(graph (%x: {0}[6,33], %u: {0}[4,33]) {{
        %i = const dense<4,-2,1,4> : i64[4,1]
        %y = scatter_nd(%x, %i, %u) {{reduction = "{1}"}}
        return %y
      }})",
                                                      type, law));
      EXPECT_THAT(anchors(program), testing::Contains("scatter"));
    }
}

TEST(Scatter, ComputedIndicesAlongAnAxisAndOfAllCoordinates) {
  const Tensor rows =
      Tensor::of<int64_t>(DType::i64, {3, 7}, {0, 1, 2, 3, -1, -4, 2, 2, 2, 2, 2, 2, 2, 2, 3, 0, 3, 0, 3, 0, 3});
  expect_runs(R"(graph (%x: f32[4,9], %i: i64[3,7], %u: f32[3,7]) {
    %n = neg(%u)
    %y = scatter_elements(%x, %i, %n) {axis = 0, reduction = "add"}
    return %y
  })",
              {{"i", rows}});
  std::vector<int64_t> all;
  for (int64_t k = 0; k < 3000; ++k) all.insert(all.end(), {k * 7 % 11, k * 5 % 13});
  expect_runs(R"(graph (%x: f32[11,13], %i: i64[3000,2], %u: f32[3000]) {
    %y = scatter_nd(%x, %i, %u)
    return %y
  })",
              {{"i", Tensor::of<int64_t>(DType::i64, {3000, 2}, all)}});
}

/// Many columns and many rows: several parts, the same bits (expect_runs compares them).
TEST(Scatter, PartsShareLinesOrTheResult) {
  std::vector<int64_t> nodes;
  for (int64_t k = 0; k < 4000; ++k) nodes.push_back(k * k % 97);
  const std::map<std::string, Tensor> inputs{{"i", Tensor::of<int64_t>(DType::i64, {4000, 1}, nodes)}};
  expect_runs(R"(graph (%x: f32[97,75], %i: i64[4000,1], %u: f32[4000,75]) {
    %y = scatter_nd(%x, %i, %u) {reduction = "add"}
    return %y
  })",
              inputs, {}, 1e-4);
  std::vector<int64_t> flat;
  for (int64_t k = 0; k < 70000; ++k) flat.push_back(k * k % 1009);
  expect_runs(R"(graph (%x: f32[1009], %i: i64[70000], %u: f32[70000]) {
    %y = scatter_elements(%x, %i, %u) {reduction = "max"}
    return %y
  })",
              {{"i", Tensor::of<int64_t>(DType::i64, {70000}, flat)}});
}

TEST(Scatter, OpenExtentsAndNone) {
  for (const int64_t n : {0, 1, 5, 40}) {
    std::vector<int64_t> at;
    for (int64_t k = 0; k < n; ++k) at.push_back(k * 3 % 8);
    expect_runs(R"(graph (%x: f32[8,n], %i: i64[n,1], %u: f32[n,n]) {
      %y = scatter_nd(%x, %i, %u) {reduction = "add"}
      return %y
    })",
                {{"i", Tensor::of<int64_t>(DType::i64, {n, 1}, at)}}, {{"n", n}});
  }
}

TEST(Scatter, AConstantIndexOutsideIsRefused) {
  try {
    parse_graph(R"(graph (%x: f32[4,3], %u: f32[2,3]) {
      %i = const dense<1,4> : i64[2,1]
      %y = scatter_nd(%x, %i, %u)
      return %y
    })",
                ops());
    FAIL() << "read";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("index 4 (element 1 of the indices) is outside an axis of 4 elements"));
  }
}

}  // namespace
}  // namespace opfuse
