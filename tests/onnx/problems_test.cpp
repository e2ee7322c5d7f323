// Files with several things wrong: all problems of one reading, none twice, and what could be read beside them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fail.hpp"
#include "onnx/model_bytes.hpp"
#include "onnx/read.hpp"

namespace opfuse::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr int64_t kBool = 9;

struct Told {
  std::vector<Diagnostic> problems;
  std::optional<Graph> rest;
  /// "name node", or "name message" of what is at no node
  Strings texts() const {
    Strings texts;
    for (const Diagnostic& d : problems) texts.push_back(d.name + " " + (d.node.empty() ? d.message : d.node));
    return texts;
  }
};

Told told(const ModelBytes& model) {
  Told told;
  try {
    read_onnx_bytes(model.text(), {}, {.problems = &told.problems, .rest = &told.rest});
  } catch (const Error&) {
    EXPECT_FALSE(told.problems.empty());
  }
  return told;
}

/// x, y: f32[1,2,4,4]
ModelBytes model_of(Strings nodes) {
  return {.graph = {.nodes = std::move(nodes),
                    .inputs = {value_info("x", kFloat, {"1", "2", "4", "4"})},
                    .outputs = {value_info("y", kFloat, {"1", "2", "4", "4"})}}};
}

/// Wrong wherever it stands: a negative axis beyond the rank.
std::string wrong(const std::string& from, const std::string& to, const std::string& name) {
  return node("Softmax", {from}, {to}, {attribute("axis", int64_t{-9})}, name);
}

TEST(Problems, EachTensorThatNothingDefinesIsToldOnce) {
  const Told t =
      told(model_of({node("Add", {"x", "p"}, {"a"}, {}, "first"), node("Add", {"a", "q"}, {"b"}, {}, "second"),
                     node("Add", {"b", "p"}, {"c"}, {}, "third"), wrong("x", "d", "fourth"),
                     node("Add", {"c", "d"}, {"y"}, {}, "sum")}));
  EXPECT_THAT(t.texts(), ElementsAre("missing_tensor first", "missing_tensor second", "bad_attribute fourth"));
  ASSERT_TRUE(t.rest);
  EXPECT_EQ(t.rest->outputs().size(), 1u);
}

TEST(Problems, EachSecondDefinitionIsTold) {
  ModelBytes m = model_of({node("Relu", {"x"}, {"a"}, {}, "one"), node("Neg", {"x"}, {"a"}, {}, "two"),
                           node("Add", {"a", "w"}, {"y"}, {}, "sum")});
  m.graph.initializers = {tensor("w", kFloat, {1}, floats({1})), tensor("w", kFloat, {1}, floats({2}))};
  m.graph.inputs.push_back(m.graph.inputs[0]);
  EXPECT_THAT(told(m).texts(), UnorderedElementsAre("duplicate_name two", HasSubstr("\"w\""), HasSubstr("\"x\"")));
}

TEST(Problems, EachCycleIsToldAndWhatIsBehindItRead) {
  const Told t = told(model_of({node("Add", {"x", "b"}, {"a"}, {}, "first"), node("Relu", {"a"}, {"b"}, {}, "second"),
                                wrong("b", "c", "behind"), node("Relu", {"d"}, {"d"}, {}, "self"),
                                wrong("x", "z", "beside"), node("Add", {"c", "d"}, {"y"}, {}, "sum")}));
  EXPECT_THAT(t.texts(), UnorderedElementsAre("cyclic_graph first", "cyclic_graph self", "bad_attribute beside"));
}

TEST(Problems, EachFunctionIsToldOnceHoweverOftenItIsCalled) {
  ModelBytes m =
      model_of({node("Again", {"x"}, {"a"}, {}, "c1", "f"), node("Again", {"a"}, {"b"}, {}, "c2", "f"),
                node("Outer", {"b"}, {"c"}, {}, "c3", "f"), node("Two", {"x", "b", "c"}, {"d"}, {}, "c4", "f"),
                node("Good", {"d"}, {"y"}, {}, "c5", "f")});
  m.domains = {"f"};
  m.functions = {function("f", "Again", {"p"}, {"q"}, {}, {node("Again", {"p"}, {"q"}, {}, "inner", "f")}, {"f"}),
                 function("f", "Outer", {"p"}, {"q"}, {}, {node("Again", {"p"}, {"q"}, {}, "inner", "f")}, {"f"}),
                 function("f", "Two", {"p", "o"}, {"q"}, {}, {node("Add", {"p", "o"}, {"q"})}),
                 function("f", "Good", {"p"}, {"q"}, {}, {node("Relu", {"p"}, {"q"})}),
                 function("f", "Good", {"p"}, {"q"}, {}, {node("Neg", {"p"}, {"q"})})};
  EXPECT_THAT(told(m).texts(), UnorderedElementsAre("duplicate_name the model defines function \"Good\" twice",
                                                    "malformed_model inner", "arity_mismatch c4"));
}

std::string always(bool value) { return tensor("go", kBool, {}, std::string(1, value ? '\1' : '\0')); }

TEST(Problems, OfABranchAllAreTold) {
  const auto branch = [](const Strings& nodes) {
    return GraphBytes{.nodes = nodes, .outputs = {value_info("r", kFloat, {})}}.text();
  };
  ModelBytes m = model_of({node("If", {"go"}, {"y"},
                                {graph_attribute("then_branch", branch({wrong("x", "p", "one"), wrong("x", "q", "two"),
                                                                        node("Add", {"p", "q"}, {"r"})})),
                                 graph_attribute("else_branch", branch({node("Relu", {"x"}, {"r"})}))},
                                "if")});
  m.graph.initializers = {always(true)};
  EXPECT_THAT(told(m).texts(), ElementsAre("bad_attribute one", "bad_attribute two"));
}

TEST(Problems, OfABodyAreToldOnceHoweverOftenItRuns) {
  const std::string body =
      GraphBytes{.nodes = {node("Identity", {"c"}, {"g"}), wrong("s", "t", "inside")},
                 .inputs = {value_info("i", kInt64, {}), value_info("c", kBool, {}), value_info("s", kFloat, {})},
                 .outputs = {value_info("g", kBool, {}), value_info("t", kFloat, {})}}
          .text();
  ModelBytes m = model_of({node("Loop", {"n", "", "x"}, {"y"}, {graph_attribute("body", body)}, "loop")});
  m.graph.initializers = {tensor("n", kInt64, {}, integers({3}))};
  EXPECT_THAT(told(m).texts(), ElementsAre("bad_attribute inside"));
}

TEST(Problems, ABrokenBodyIsToldOnce) {
  ModelBytes m = model_of({node("If", {"go"}, {"a"}, {graph_attribute("then_branch", "\xff\xff\xff")}, "if"),
                           wrong("x", "b", "other"), node("Add", {"a", "b"}, {"y"})});
  m.graph.initializers = {always(true)};
  EXPECT_THAT(told(m).texts(), ElementsAre("malformed_model if", "bad_attribute other"));
}

TEST(Problems, SparseInitializersAreNamed) {
  ModelBytes m =
      model_of({node("Add", {"x", "w"}, {"a"}, {}, "sum"), wrong("a", "y", "behind"), wrong("x", "z", "beside")});
  Encoder sparse, graph;
  sparse.bytes(1, tensor("w", kFloat, {1}, floats({1})));
  graph.bytes(15, sparse.text());
  m.graph.extra = graph.text();
  EXPECT_THAT(told(m).texts(), ElementsAre("unsupported_op initializer \"w\" is sparse", "bad_attribute beside"));
}

/// A name that a later node of the branch defines: Clip would have no minimum.
TEST(Problems, ABranchThatIsOutOfOrder) {
  const std::string branch = GraphBytes{
      .nodes = {node("Clip", {"x", "low"}, {"r"}, {}, "clip"), node("Identity", {"zero"}, {"low"})},
      .initializers = {tensor("zero", kFloat, {}, floats({0}))},
      .outputs = {value_info(
          "r", kFloat, {})}}.text();
  ModelBytes m = model_of({node(
      "If", {"go"}, {"y"}, {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)}, "if")});
  m.graph.initializers = {always(true)};
  EXPECT_THAT(told(m).texts(), ElementsAre("missing_tensor if"));
}

TEST(Problems, AnAxisThatHasNoDefault) {
  EXPECT_THAT(told(model_of({node("Concat", {"x", "x"}, {"y"}, {}, "joined")})).texts(),
              ElementsAre("bad_attribute joined"));
}

TEST(Problems, AConditionIsBool) {
  const std::string branch =
      GraphBytes{.nodes = {node("Relu", {"x"}, {"r"})}, .outputs = {value_info("r", kFloat, {})}}.text();
  ModelBytes m = model_of({node(
      "If", {"go"}, {"y"}, {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)}, "if")});
  m.graph.initializers = {tensor("go", kFloat, {}, floats({1}))};
  EXPECT_THAT(told(m).texts(), ElementsAre("dtype_mismatch if"));
}

TEST(Problems, LoopsAndSequencesOfWhatIsAbsent) {
  const std::string body =
      GraphBytes{.nodes = {node("Identity", {"c"}, {"g"}), node("Identity", {"s"}, {"t"})},
                 .inputs = {value_info("i", kInt64, {}), value_info("c", kBool, {}), value_info("s", kFloat, {})},
                 .outputs = {value_info("g", kBool, {}), value_info("t", kFloat, {})}}
          .text();
  ModelBytes loop = model_of({node("Loop", {"n", "", ""}, {"y"}, {graph_attribute("body", body)}, "loop")});
  loop.graph.initializers = {tensor("n", kInt64, {}, integers({0}))};
  EXPECT_EQ(told(loop).problems.size(), 1u);
  ModelBytes sequence = model_of({node("SequenceConstruct", {"x", ""}, {"s"}, {}, "pair"),
                                  node("SequenceAt", {"s", "n"}, {"a"}), node("Add", {"x", "a"}, {"y"})});
  sequence.graph.initializers = {tensor("n", kInt64, {}, integers({1}))};
  const Graph kept = read_onnx_bytes(sequence.text());  // as nodes that are not known
  EXPECT_EQ(kept.nodes().size(), 3u);
}

TEST(Problems, ASplitIntoASequenceAddsUp) {
  const auto texts = [](const std::vector<int64_t>& sizes, const char* extent) {
    ModelBytes m = model_of({node("SplitToSequence", {"x", "n"}, {"s"}, {attribute("axis", int64_t{3})}, "split"),
                             node("ConcatFromSequence", {"s"}, {"y"}, {attribute("axis", int64_t{3})}, "join")});
    m.graph.inputs = {value_info("x", kFloat, {"1", "2", "4", extent})};
    m.graph.outputs = {value_info("y", kFloat, {})};
    m.graph.initializers = {tensor("n", kInt64, {static_cast<int64_t>(sizes.size())}, integers(sizes))};
    return told(m).texts();
  };
  EXPECT_THAT(texts({1, 2}, "4"), ElementsAre("bad_attribute split"));
  EXPECT_THAT(texts({5, -1}, "4"), ElementsAre("bad_attribute split"));
}

}  // namespace
}  // namespace opfuse::test
