// A recurrent layer as a product and steps: every cell, direction and layout.
#include "passes/expand_recurrent.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

std::string layer(const std::string& op, int64_t gates, int64_t directions, const std::string& attrs,
                  const std::string& x = "t,b,4") {
  const bool lstm = op == "lstm";
  return fmt::format(
      "graph (%x: f32[{}]) {{\n %w = const rand<1> : f32[{},{},4]\n %r = const rand<2> : f32[{},{},6]\n"
      " %b = const rand<3> : f32[{},{}]\n %y, %yh{} = {}(%x, %w, %r, %b) {{{}}}\n return %y, %yh{}\n}}",
      x, directions, 6 * gates, directions, 6 * gates, directions, 12 * gates, lstm ? ", %yc" : "", op, attrs,
      lstm ? ", %yc" : "");
}

int64_t count(const Graph& graph, std::string_view op) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const Node* n) { return n->is(op); });
}

void expect_expansion(const std::string& text, int64_t directions) {
  const Graph before = parse_graph(text, ops());
  Graph after = before.clone();
  EXPECT_TRUE(expand_recurrent(after));
  ASSERT_NO_THROW(verify(after));
  EXPECT_EQ(count(after, "recurrent_steps"), directions);
  const auto is_product = [](const Node* n) { return n->label.starts_with("RecurrentInput"); };
  EXPECT_EQ(std::count_if(after.nodes().begin(), after.nodes().end(), is_product), 1);
  for (size_t i = 0; i < before.outputs().size(); ++i) {
    EXPECT_EQ(after.outputs()[i]->name, before.outputs()[i]->name);
    EXPECT_EQ(after.outputs()[i]->type.text(), before.outputs()[i]->type.text());
  }
  testing::expect_same_values(before, after, {.tolerance = 1e-12});
}

TEST(ExpandRecurrent, CellsAndDirectionsAreProductsAndSteps) {
  const std::pair<const char*, int64_t> cells[] = {{"rnn", 1}, {"gru", 3}, {"lstm", 4}};
  for (const auto& [op, gates] : cells) {
    expect_expansion(layer(op, gates, 1, ""), 1);
    expect_expansion(layer(op, gates, 1, "direction = \"reverse\""), 1);
    expect_expansion(layer(op, gates, 2, "direction = \"bidirectional\""), 2);
  }
}

TEST(ExpandRecurrent, TheBatchMayComeFirst) {
  expect_expansion(layer("gru", 3, 2, "direction = \"bidirectional\", layout = 1, linear_before_reset = true"), 2);
  expect_expansion(layer("lstm", 4, 1, "layout = 1", "3,5,4"), 1);
}

TEST(ExpandRecurrent, SparesEverythingElse) {
  Graph graph = parse_graph("graph (%x: f32[2,3]) { %y = tanh(%x) return %y }", ops());
  EXPECT_FALSE(expand_recurrent(graph));
}

}  // namespace
}  // namespace opfuse
