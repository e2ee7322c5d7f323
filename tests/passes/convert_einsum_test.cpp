// Einsum as a product of matrices, and what is none.
#include <gtest/gtest.h>

#include "passes/passes.hpp"
#include "testing/corners.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

struct Equation {
  const char *text, *a, *b;
  int nodes;  ///< what it becomes
};

void PrintTo(const Equation& e, std::ostream* out) { *out << e.text; }

std::string graph_of(const Equation& e) {
  return fmt::format("graph (%a: f32[{}], %b: f32[{}]) {{ %y = einsum(%a, %b) {{equation = \"{}\"}} return %y }}", e.a,
                     e.b, e.text);
}

class ConvertEinsum : public ::testing::TestWithParam<Equation> {};

TEST_P(ConvertEinsum, AContractionIsAMatrixProductOfTheSameValues) {
  const Graph original = parse_graph(graph_of(GetParam()), ops());
  Graph graph = original.clone();
  ASSERT_TRUE(convert_einsum()(graph));
  verify(graph);
  int products = 0;
  for (const Node* node : graph.nodes()) products += node->is("matmul");
  EXPECT_EQ(products, 1) << print(graph);
  EXPECT_EQ(static_cast<int>(graph.nodes().size()), GetParam().nodes) << print(graph);
  testing::expect_same_values(original, graph, {});
  if (original.symbols().empty()) testing::expect_same_on_corners(original, graph);
}

INSTANTIATE_TEST_SUITE_P(Equations, ConvertEinsum,
                         ::testing::Values(Equation{"ij,jk->ik", "2,3", "3,4", 1},  // a plain product
                                           Equation{"ij,kj->ik", "2,3", "4,3", 2},  // transposed
                                           Equation{"ij,jk", "2,3", "3,4", 1},      // implicit result
                                           Equation{"bhid,bhjd->bhij", "2,3,4,5", "2,3,6,5", 2},
                                           Equation{"bqhd,bkhd->bhqk", "2,4,3,5", "2,6,3,5", 3},
                                           Equation{"bhqk,bkhd->bqhd", "2,3,4,6", "2,6,3,5", 3},
                                           Equation{"...qd,...kd->...qk", "2,3,4,5", "2,3,6,5", 2},
                                           Equation{"bsd,dhk->bshk", "2,3,4", "4,5,6", 3},    // projection into heads
                                           Equation{"bshk,hkd->bsd", "2,3,5,6", "5,6,4", 3},  // and out of them
                                           Equation{"bcij,bdij->bcd", "2,3,4,5", "2,6,4,5", 4},
                                           Equation{"bxyc,bczw->bwzyx", "2,3,4,5", "2,5,6,7", 7},
                                           Equation{"bsd,dhk->bshk", "n,m,4", "4,5,6", 3}),
                         [](const auto& info) { return "equation" + std::to_string(info.index); });

TEST(ConvertEinsumDeclines, WhatIsNoMatrixProduct) {
  const auto reason = [](const std::string& text) {
    RewriteReport report;
    Graph graph = parse_graph(text, ops());
    EXPECT_FALSE(convert_einsum()(graph, &report)) << text;
    return report.notes.empty() ? "" : report.notes[0].reason.code;
  };
  const auto of = [&](const char* equation, const char* a, const char* b) {
    return reason(graph_of({equation, a, b, 0}));
  };
  EXPECT_EQ(of("ii,ij->ij", "3,3", "3,4"), "diagonal");
  EXPECT_EQ(of("ij,jk->ik", "2,1", "3,4"), "broadcast");
  EXPECT_EQ(of("ijm,jk->ik", "2,3,5", "3,4"), "sum_of_one");
  EXPECT_EQ(of("i,j->ij", "2", "3"), "no_contraction");
  EXPECT_EQ(of("i,i->", "3", "3"), "no_matrix");
  EXPECT_EQ(of("bsd,bdhk->bshk", "2,3,4", "2,4,n,m"), "unknown_dimension");
  EXPECT_EQ(of("bikj,bjl->bikl", "2,0,3,4", "2,4,5"), "empty");
  EXPECT_EQ(reason("graph (%a: f32[2,3]) { %y = einsum(%a) {equation = \"ij->ji\"} return %y }"), "operand_count");
}

}  // namespace
}  // namespace opfuse
