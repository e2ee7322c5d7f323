// A graph prints and parses back to itself.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/fail.hpp"
#include "ir/fir_file.hpp"
#include "testing/random_graph.hpp"

namespace opfuse {
namespace {

Graph reread(const Graph& g) { return parse_graph(print(g), ops(), {.data = constant_data(g), .folder = ""}); }

/// Everything the text keeps but `equal` ignores.
std::string details(const Graph& g) {
  std::string out = g.name + g.model_file;
  for (const auto& [key, value] : g.metadata) out += key + value;
  for (const Value* v : g.inputs()) out += v->name + ";";
  for (const Node* n : g.nodes()) {
    for (const Value* v : n->outputs) out += v->name + ":" + v->type.text() + ";";
    for (const Source& s : n->sources) out += fmt::format("{}|{}|{}|{};", s.name, s.op_type, s.domain, s.opset);
    out += n->label + n->pattern;
    if (n->body) out += "{" + details(*n->body) + "}";
  }
  return out;
}

RC_GTEST_PROP(RoundTrip, ParseUndoesPrint, ()) {
  const Graph g = testing::RandomGraph().make();
  verify(g);
  const std::string text = print(g);
  RC_LOG() << text;
  const Graph back = reread(g);
  std::string why;
  RC_ASSERT(equal(g, back, &why));
  RC_ASSERT(print(back) == text);
  RC_ASSERT(details(back) == details(g));
  RC_ASSERT(structural_hash(back) == structural_hash(g));
  verify(back);
}

RC_GTEST_PROP(RoundTrip, CloneIsEqualAndIndependent, ()) {
  Graph g = testing::RandomGraph().make();
  const std::string text = print(g);
  Graph copy = g.clone();
  RC_ASSERT(print(copy) == text);
  verify(copy);
  copy.remove_dead_nodes();
  verify(copy);
  RC_ASSERT(print(g) == text);
}

RC_GTEST_PROP(RoundTrip, BrokenTextIsAUserError, ()) {
  std::string text = print(testing::RandomGraph().make());
  const int edits = *rc::gen::inRange(1, 4);
  for (int i = 0; i < edits && !text.empty(); ++i) {
    const size_t at = *rc::gen::inRange<size_t>(0, text.size());
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        text.erase(at, *rc::gen::inRange<size_t>(1, 20));
        break;
      case 1:
        text.insert(at, *rc::gen::element<std::string>("%", "{", "}", "(", ")", "<", ">", "\"", "@", ":", ",", "0",
                                                       "-1", "99999999999999999999", "_", "as"));
        break;
      default:
        text[at] = static_cast<char>(*rc::gen::inRange(1, 256));
        break;
    }
  }
  RC_LOG() << text;
  try {
    parse_graph(text, ops());
  } catch (const Error& e) {
    RC_ASSERT(e.diagnostic().name != "internal");
  }
}

TEST(RoundTrip, FilesKeepLargeConstantsBesideTheText) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("opfuse_round_trip_test_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const Graph g = parse_graph(
      R"(graph (%x: f32[4,100]) { %a = const rand<1> : f32[100,9] %b = const rand<1> : f32[100,9] %c = const rand<2> : f32[9]
                                   %p = matmul(%x, %a) %q = matmul(%x, %b) %r = add(%p, %q) %s = add(%r, %c) return %s })",
      ops());
  write_fir(g, (folder / "g.fir").string(), "fir 1 | test\nsecond line");
  EXPECT_EQ(fs::file_size(folder / "g.bin"), 3648u) << "equal constants are stored once, at multiples of 64";
  const Graph back = read_fir((folder / "g.fir").string(), ops());
  EXPECT_TRUE(equal(g, back));
  fs::resize_file(folder / "g.bin", 100);
  EXPECT_THROW(read_fir((folder / "g.fir").string(), ops()), Error);
  fs::remove_all(folder);
  EXPECT_THROW(read_fir((folder / "g.fir").string(), ops()), Error);
}

TEST(RoundTrip, DefaultAttributesAreNotPrinted) {
  const Graph g = parse_graph(
      "graph (%x: f32[1,2,4,4], %w: f32[2,2,3,3]) { %y = conv(%x, %w) {strides = [1,1], group = 1, pads = [1,1,1,1]} "
      "return %y }",
      ops());
  const std::string text = print(g);
  EXPECT_EQ(text.find("group"), std::string::npos) << text;
  EXPECT_NE(text.find("{pads = [1,1,1,1]"), std::string::npos) << text;
}

TEST(RoundTrip, TypesAndSourcesCanBeLeftOut) {
  const Graph g = parse_graph("graph (%x: f32[2]) { %y = relu(%x) @\"n\"(Relu@7) return %y }", ops());
  EXPECT_EQ(print(g, {.types = false, .sources = false}), "graph (%x: f32[2]) {\n  %y = relu(%x)\n  return %y\n}\n");
}

}  // namespace
}  // namespace opfuse
