// opfuse.no_fuse and opfuse.fuse_with of nodes in a file: what the plan makes of them, and values that are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/compilation.hpp"
#include "driver/runs_everywhere.hpp"
#include "onnx/metadata.hpp"
#include "onnx/wire.hpp"
#include "opfuse/error.hpp"

namespace opfuse {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// The graph as if its node had been read with that entry in metadata_props.
Graph with_entry(const std::string& text, const std::string& node, const std::string& key, const std::string& value) {
  Graph graph = parse_graph(text, ops());
  onnx::Encoder entry, fields;
  entry.bytes(1, key);
  entry.bytes(2, value);
  fields.message(9, entry);
  graph.metadata.emplace_back(std::string(onnx::kNodeFields) + node, onnx::to_hex(fields.text()));
  return graph;
}

Compilation planned(const Graph& graph, const PlanRequest& request = {}) {
  CompilationOptions options;
  options.plan = request;
  Compilation c(graph, parse_target("cpu:avx512"), options);
  c.run_to(Milestone::lowered);
  return c;
}

const std::string kThree =
    "graph (%x: f32[64,256]) {\n %a = relu(%x) @\"a\"\n %b = sigmoid(%a) @\"b\"\n %c = tanh(%b) @\"c\"\n return %c }";
const std::string kSlow =
    "graph (%x: f32[1,64,32,32]) { %w = const rand<1> : f32[256,64,1,1] %a = tanh(%x) @\"act\"\n"
    "%y = conv(%a, %w) @\"conv\" return %y }";

TEST(ModelHints, KeepApart) {
  EXPECT_EQ(planned(parse_graph(kThree, ops())).program.launches.size(), 1u);
  const Compilation one = planned(with_entry(kThree, "a", "opfuse.no_fuse", "b"));
  EXPECT_EQ(one.program.launches.size(), 2u);
  EXPECT_THAT(one.notes(), Contains(HasSubstr("1 pairs apart")));
  EXPECT_EQ(planned(with_entry(kThree, "b", "opfuse.no_fuse", "[\"a\",\"c\"]")).program.launches.size(), 3u);
  EXPECT_EQ(planned(with_entry(kThree, "b", "opfuse.no_fuse", "*")).program.launches.size(), 3u);
}

TEST(ModelHints, JoinWhatIsPredictedSlower) {
  EXPECT_EQ(planned(parse_graph(kSlow, ops())).program.launches.size(), 2u);
  EXPECT_EQ(planned(with_entry(kSlow, "act", "opfuse.fuse_with", "conv")).program.launches.size(), 1u);
  const std::string two =
      "graph (%x: f32[1,8,8,8]) { %w = const rand<1> : f32[8,8,3,3] %a = conv(%x, %w) @\"first\"\n"
      "%y = conv(%a, %w) @\"second\" return %y }";
  EXPECT_THROW(planned(with_entry(two, "first", "opfuse.fuse_with", "second")), Error);
}

TEST(ModelHints, GiveWayToTheRequestAndSaySo) {
  const Compilation c = planned(with_entry(kSlow, "act", "opfuse.fuse_with", "conv"), {.no_fuse = {{"conv", "act"}}});
  EXPECT_EQ(c.program.launches.size(), 2u);
  EXPECT_THAT(c.notes(), Contains(HasSubstr("the request says the opposite")));
}

TEST(ModelHints, OfNodesThatAreGoneAreNotes) {
  const Compilation c = planned(with_entry(kThree, "a", "opfuse.no_fuse", "folded"));
  EXPECT_EQ(c.program.launches.size(), 1u);
  EXPECT_THAT(c.notes(), Contains(HasSubstr("no node of \"folded\"")));
}

TEST(ModelHints, ThatAreNoNamesAreErrors) {
  for (const char* value : {"[1]", "[", "[]"})
    EXPECT_THROW(planned(with_entry(kThree, "a", "opfuse.no_fuse", value)), Error) << value;
  EXPECT_THROW(planned(with_entry(kThree, "a", "opfuse.fuse_with", "*")), Error);
}

}  // namespace
}  // namespace opfuse
