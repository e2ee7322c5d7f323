// Graphs that are wide: values with very many readers, nodes with very many operands. Planning is linear in them, and
// launches are as few as groups may be large.
#include <fmt/format.h>

#include "driver/compilation.hpp"
#include "driver/runs_everywhere.hpp"
#include "passes/passes.hpp"

namespace opfuse {
namespace {

using test::expect_runs;

/// `readers` of one value, no two alike, and what is made of them.
std::string wide(int readers, const std::string& first, const std::string& end) {
  std::string text = "graph (%x: f32[1,8]) {\n" + first, all;
  for (int i = 0; i < readers; ++i) {
    text += fmt::format(" %r{} = leaky_relu(%a) {{alpha={}}}\n", i, (i + 1.0) / (readers + 1.0));
    all += fmt::format("{}%r{}", i ? ", " : "", i);
  }
  return text + fmt::vformat(end, fmt::make_format_args(all)) + " }";
}

const std::string kComputed = " %a = tanh(%x)\n", kSum = " %y = sum({}) return %y";

/// Nodes in what planning asked prices of, and lowered for the ledger.
size_t priced_nodes(const std::string& text) {
  Graph graph = parse_graph(text, ops());
  prepare(graph, {}, nullptr);
  const TargetInfo target = parse_target("cpu:avx512");
  PlanOptions options = plan_options(target, {});
  size_t nodes = 0;
  options.price = [&nodes, ask = options.price](const Node& node) {
    nodes += node.body ? node.body->nodes().size() : 1;
    return ask(node);
  };
  options.legal = [&nodes, ask = options.legal](const Node& node) {
    nodes += node.body ? node.body->nodes().size() : 1;
    return ask(node);
  };
  options.reads = [&nodes, ask = options.reads](const Node& node) {
    nodes += node.body ? node.body->nodes().size() : node.inputs.size();
    return ask(node);
  };
  make_plan(graph, options);
  return nodes;
}

TEST(Wide, ReadersOfOneValueShareLaunches) {
  const Program program = expect_runs(wide(150, kComputed, " return {}"));
  EXPECT_LE(program.launches.size(), 5u) << print(program);
}

TEST(Wide, FewReadersAreTriedInPairs) { EXPECT_EQ(expect_runs(wide(6, kComputed, " return {}")).launches.size(), 1u); }

TEST(Wide, ReadersOfOtherShapesStayApart) {
  const Program program = expect_runs("graph (%x: f32[1,8], %z: f32[4,8]) {\n" +
                                      wide(12, kComputed, " %b = add(%a, %z) return %b, {}").substr(23));
  EXPECT_EQ(program.launches.size(), 2u) << print(program);
}

TEST(Wide, SumsOfManyOperandsAreChains) {
  const Program program = expect_runs(wide(150, kComputed, kSum));
  EXPECT_LE(program.launches.size(), 10u) << print(program);
}

std::vector<std::string> notes_of(const std::string& text, const Limits& limits) {
  CompilationOptions options;
  options.limits = limits;
  Compilation compilation(parse_graph(text, ops()), parse_target("cpu:avx512"), options);
  compilation.run_to(Milestone::planned);
  return compilation.notes();
}

TEST(Wide, LimitsThatBindAreNoted) {
  using testing::Contains;
  using testing::HasSubstr;
  const std::string text = wide(12, kComputed, " %y = concat({}) {{axis=1}} return %y");
  EXPECT_THAT(notes_of(text, limits_with({{"priced_operands", 11}})), Contains(HasSubstr("--limit priced_operands=N")));
  EXPECT_THAT(notes_of(text, {}), Not(Contains(HasSubstr("--limit priced_operands=N"))));
  EXPECT_THAT(notes_of(text, {}), Contains(HasSubstr("--limit sibling_readers=N")));
  EXPECT_THAT(notes_of(text, limits_with({{"sibling_readers", 12}})),
              Not(Contains(HasSubstr("--limit sibling_readers=N"))));
}

TEST(Wide, PlanningIsLinear) {
  for (const std::string& end :
       {std::string(" return {}"), kSum, std::string(" %y = concat({}) {{axis=1}} return %y")}) {
    const size_t one = priced_nodes(wide(200, kComputed, end)), two = priced_nodes(wide(400, kComputed, end));
    EXPECT_LT(two, 3 * one) << end;
    EXPECT_LT(two, 400 * 60u) << end;
  }
}

class Variadic : public ::testing::TestWithParam<const char*> {};

TEST_P(Variadic, OfManyOperandsIsEqual) {
  std::string operands = "%x", inputs = "%x: f32[3,1]";
  for (int i = 0; i < 130; ++i) operands += i % 3 ? ", %z" : ", %x", operands += i % 40 ? "" : ", %v";
  const std::string text = fmt::format("graph (%x: f32[3,1], %z: f32[1,4], %v: f32[2,3,4]) {{ %y = {}({}) return %y }}",
                                       GetParam(), operands);
  Graph graph = parse_graph(text, ops());
  EXPECT_TRUE(split_operands()(graph));
  EXPECT_EQ(graph.nodes().size(), GetParam() == std::string("mean") ? 4u : 3u);
  for (const Node* node : graph.nodes()) EXPECT_LE(node->inputs.size(), 64u);
  EXPECT_EQ(graph.outputs()[0]->type.text(), "f32[2,3,4]");
  EXPECT_EQ(graph.outputs()[0]->name, "y");
  expect_runs(text);
}

INSTANTIATE_TEST_SUITE_P(Operators, Variadic, ::testing::Values("sum", "mean", "max", "min"),
                         [](const auto& i) { return std::string(i.param); });

TEST(Variadic, OfFewOperandsStays) {
  std::string operands = "%x";
  for (int i = 1; i < 64; ++i) operands += ", %x";
  Graph graph = parse_graph("graph (%x: f32[3]) { %y = sum(" + operands + ") return %y }", ops());
  EXPECT_FALSE(split_operands()(graph));
}

/// Chains of functions behind a tile of a product: as many are under way as registers hold, the rest would be on the
/// stack (all at once: 232 kB, and five such functions took 1.8 times as long).
TEST(Wide, TilesOfLongChainsStayInRegisters) {
  CompilationOptions options;
  options.artifact.cache = false;
  const std::string text = R"(graph (%x: f32[257,8]) { %w = const rand<1> : f32[8,8] %a = matmul(%x, %w)
    %b = mish(%a) %c = mish(%b) %y = mish(%c) return %y })";
  const Compilation made = compile_graph(parse_graph(text, ops()), parse_target("cpu:avx512"), options);
  ASSERT_EQ(made.program.launches.size(), 1u);
  EXPECT_LT(made.artifact.code.size(), 210'000u);
}

}  // namespace
}  // namespace opfuse
