// Shape arithmetic backwards from a value: operators that only move elements move symbols as well.
#include "ir/dim_values.hpp"

#include <gtest/gtest.h>

#include "ir/graph.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

std::optional<std::vector<Dim>> dims_of(const std::string& body) {
  const Graph graph = parse_graph(R"(graph (%x: f32[n,3,h,8]) {
    %s = shape(%x)
    %pairs = const dense<2,2> : i64[2]
    %flat = const dense<-1> : i64[1]
    %p = reshape(%s, %pairs)
    )" + body + R"(
    %v = reshape(%m, %flat)
    return %v
  })",
                                  ops());
  return dim_values(*graph.outputs()[0]);
}

const Dim n = Dim::symbol("n"), h = Dim::symbol("h");

TEST(DimValues, GoThroughATransposeOfAList) {
  EXPECT_EQ(dims_of("%m = transpose(%p) {perm = [1,0]}"), (std::vector<Dim>{n, h, 3, 8}));
}

TEST(DimValues, GoThroughAReversingSliceOfRows) {  // torch.nn.functional.pad: the last dimension's pair comes first
  const char* reversed = R"(%b = const dense<-1> : i64[1] %e = const dense<-9223372036854775807> : i64[1]
    %a = const dense<0> : i64[1] %m = slice(%p, %b, %e, %a, %b))";
  EXPECT_EQ(dims_of(reversed), (std::vector<Dim>{h, 8, n, 3}));
}

TEST(DimValues, GoThroughASliceOfColumns) {
  const char* second = R"(%b = const dense<1> : i64[1] %e = const dense<2> : i64[1] %m = slice(%p, %b, %e, %b))";
  EXPECT_EQ(dims_of(second), (std::vector<Dim>{3, 8}));
}

TEST(DimValues, StopAtBoundsThatAreOpen) {
  const char* open = R"(%b = const dense<0> : i64[1] %two = const dense<2> : i64[1] %three = const dense<3> : i64[1]
    %e = slice(%s, %two, %three) %m = slice(%p, %b, %e))";
  EXPECT_EQ(dims_of(open), std::nullopt);
}

}  // namespace
}  // namespace opfuse
