// Recurrent layers compiled: one product for the inputs of all steps, then a loop of launches, on each CPU target.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/pipeline.hpp"
#include "driver/shape_for_target.hpp"
#include "fusion/plan.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "onnx/read.hpp"
#include "ops/registry.hpp"
#include "program/body.hpp"
#include "proof/compare.hpp"
#include "testing/runs_here.hpp"
#include "testing/temporary_folder.hpp"

namespace opfuse {
namespace {

std::vector<TargetInfo> runnable_targets() { return targets_here({"cpu:avx512", "cpu:avx2", "cpu:baseline"}); }

struct Layer {
  std::string op, attrs;
  int64_t batch = 3, in = 5, hidden = 20;
  std::string time = "4", open_batch = {};  ///< text of the shapes
  bool lengths = false, states = false, bias = true, constant = true;
  std::string length_batch = {}, state_batch = {};  ///< where these call it otherwise
};

/// The layer, a transpose to the batch first and a Relu behind y; y_h is a result too.
std::string text_of(const Layer& l) {
  const bool lstm = l.op == "lstm", both = l.attrs.find("bidirectional") != std::string::npos;
  const int64_t gates = (lstm ? 4 : l.op == "gru" ? 3 : 1) * l.hidden, d = both ? 2 : 1;
  const std::string batch = l.open_batch.empty() ? std::to_string(l.batch) : l.open_batch;
  std::string inputs = fmt::format("%x: f32[{},{},{}]", l.time, batch, l.in), body;
  const auto weight = [&](const char* name, const std::string& shape, int seed) {
    if (l.constant)
      body += fmt::format(" %{} = const rand<{}> : f32[{}]\n", name, seed, shape);
    else
      inputs += fmt::format(", %{}: f32[{}]", name, shape);
  };
  weight("w", fmt::format("{},{},{}", d, gates, l.in), 1);
  weight("r", fmt::format("{},{},{}", d, gates, l.hidden), 2);
  if (l.bias) weight("b", fmt::format("{},{}", d, 2 * gates), 3);
  if (l.lengths) inputs += fmt::format(", %n: i32[{}]", l.length_batch.empty() ? batch : l.length_batch);
  const std::string state = fmt::format("f32[{},{},{}]", d, l.state_batch.empty() ? batch : l.state_batch, l.hidden);
  if (l.states) inputs += ", %h0: " + state + (lstm ? ", %c0: " + state : "");
  std::string operands =
      fmt::format("%x, %w, %r, {}, {}, {}", l.bias ? "%b" : "_", l.lengths ? "%n" : "_", l.states ? "%h0" : "_");
  if (lstm && l.states) operands += ", %c0";
  body += fmt::format(" %y, %yh{} = {}({}) {}\n", lstm ? ", %yc" : "", l.op, operands, l.attrs);
  body += " %t = transpose(%y) {perm = [0,2,1,3]}\n %z = relu(%t)\n";
  return fmt::format("graph ({}) {{\n{} return %z, %yh{}\n}}", inputs, body, lstm ? ", %yc" : "");
}

struct Compiled {
  Graph graph;
  Program program;
  Executable executable;
};

Compiled compiled(const std::string& text, const TargetInfo& target) {
  Graph graph = parse_graph(text, ops());
  prepare(graph, {}, nullptr);
  graph = apply(graph, plan_graph(graph, target, {}));
  shape_for_target(graph, target);
  Program program = lower_to_program(graph, target);
  ArtifactOptions options;
  options.cache = false;
  Executable executable = Executable::from_artifact(build_artifact(program, target, options));
  return {std::move(graph), std::move(program), std::move(executable)};
}

/// Every group alone and the model as a whole.
void expect_right(const Layer& layer, const SymbolValues& sizes = {}) {
  for (const TargetInfo& target : runnable_targets()) {
    const Compiled c = compiled(text_of(layer), target);
    std::vector<Tensor> inputs = random_inputs(c.graph, {.seed = 1, .symbols = sizes});
    std::vector<Tensor> others = random_inputs(c.graph, {.seed = 2, .symbols = sizes});
    for (std::vector<Tensor>* all : {&inputs, &others})
      for (Tensor& t : *all)
        for (int64_t i = 0; t.dtype() == DType::i32 && i < t.elements(); ++i) t.set_integer(i, 1 + i % 4);
    for (const GroupComparison& g : compare_groups(c.graph, c.program, c.executable, inputs, {}))
      EXPECT_TRUE(g.ok) << target.name << " " << g.name << " " << g.difference.relative();
    const Comparison whole = compare_model(c.graph, c.graph, c.program, c.executable, inputs, {}, {});
    for (const OutputComparison& o : whole.outputs)
      EXPECT_TRUE(o.ok && o.same_as_groups) << target.name << " " << o.name << " " << o.difference.relative();
    for (const OutputComparison& o : compare_outputs(c.graph, c.executable, inputs, others, {}))
      EXPECT_TRUE(o.ok) << target.name << " " << o.name << " " << o.difference.relative() << "\n" << text_of(layer);
  }
}

TEST(Recurrent, CellsAreRightInAllDirections) {
  for (const char* op : {"rnn", "gru", "lstm"})
    for (const char* direction : {"forward", "reverse", "bidirectional"})
      expect_right({op, fmt::format("{{direction = \"{}\"}}", direction)});
}

TEST(Recurrent, OptionsOfCellsAreRight) {
  expect_right({.op = "gru", .attrs = "{linear_before_reset = true}"});
  expect_right({.op = "lstm", .attrs = "{input_forget = true, clip = 0.2}", .states = true});
  expect_right({.op = "lstm", .attrs = "{activations = [\"HardSigmoid\", \"Relu\", \"Softsign\"]}", .bias = false});
}

TEST(Recurrent, SequencesEndWhereTheirLengthsSay) {
  for (const char* op : {"rnn", "gru", "lstm"})
    expect_right({.op = op, .attrs = "{direction = \"bidirectional\"}", .lengths = true, .states = true});
}

TEST(Recurrent, WeightsMayBeComputed) {
  for (const char* op : {"rnn", "gru", "lstm"}) expect_right({.op = op, .hidden = 7, .constant = false});
}

TEST(Recurrent, TimeAndBatchMayBeOpen) {
  const Layer layer{.op = "lstm", .attrs = "{direction = \"bidirectional\"}", .time = "t", .open_batch = "b"};
  for (const int64_t time : {0, 6}) expect_right(layer, {{"t", time}, {"b", 1}});
  expect_right(layer, {{"t", 3}, {"b", 5}});
}

TEST(Recurrent, ASequenceWithoutStepsEndsWhereItBegins) {
  expect_right({.op = "lstm", .attrs = "{}", .time = "0", .states = true});  // y_h is h0, which has a name
  Layer layer{.op = "gru", .attrs = "{direction = \"bidirectional\"}", .hidden = 3, .time = "0", .open_batch = "b"};
  layer.lengths = true;
  expect_right(layer, {{"b", 3}});
  layer.op = "rnn", layer.attrs = "{}", layer.time = "2";
  expect_right(layer, {{"b", 0}});
}

TEST(Recurrent, TheBatchOfStatesAndLengthsMayHaveANameOfItsOwn) {
  Layer layer{.op = "lstm", .attrs = "{direction = \"bidirectional\"}", .time = "t", .open_batch = "b"};
  layer.lengths = layer.states = true, layer.length_batch = "m", layer.state_batch = "k";
  expect_right(layer, {{"t", 3}, {"b", 2}, {"m", 2}, {"k", 2}});
  layer.open_batch = "", layer.op = "gru", layer.batch = 2;
  expect_right(layer, {{"t", 3}, {"m", 2}, {"k", 2}});
}

TEST(Recurrent, ExtentsThatFollowFromTheLayerMayBeOpen) {
  Graph graph = parse_graph(R"(graph (%x: f32[t,b,2], %h0: f32[d,m,k]) {
    %w = const rand<1> : f32[2,4,2] %r = const rand<2> : f32[2,4,4]
    %y, %yh = rnn(%x, %w, %r, _, _, %h0) {direction = "bidirectional"} return %y, %yh })",
                            ops());
  prepare(graph, {}, nullptr);
  const TargetInfo target = host_target();
  graph = apply(graph, plan_graph(graph, target, {}));
  shape_for_target(graph, target);
  EXPECT_EQ(lower_to_program(graph, target).bodies.size(), 2u);
}

TEST(Recurrent, OneKernelServesAllSteps) {
  const TargetInfo target = host_target();
  const Compiled few = compiled(text_of({.op = "lstm", .time = "4"}), target);
  const Compiled many = compiled(text_of({.op = "lstm", .time = "1000"}), target);
  ASSERT_EQ(many.program.bodies.size(), 1u);
  EXPECT_EQ(many.program.bodies[0].times, Dim(1000));
  EXPECT_EQ(many.program.launches.size(), few.program.launches.size());
  EXPECT_EQ(many.program.bodies[0].launches, 1);
}

TEST(Recurrent, ALoopStaysInTheFile) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("m.opf");
  const Compiled c =
      compiled(text_of({.op = "gru", .attrs = "{direction = \"bidirectional\"}", .states = true}), host_target());
  c.executable.save(path);
  const std::vector<Tensor> inputs = random_inputs(c.graph, {.seed = 1, .symbols = {}});
  const auto before = run_executable(c.executable, inputs), after = run_executable(Executable::load(path), inputs);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(before[i].same_bits(after[i]));
}

TEST(Recurrent, NoStepAtAllLeavesTheInitialStates) {
  const Compiled c = compiled(text_of({.op = "rnn", .time = "t", .states = true}), host_target());
  const SymbolValues none{{"t", 0}};
  const std::vector<Tensor> inputs = random_inputs(c.graph, {.seed = 1, .symbols = none});
  const std::vector<Tensor> results = run_executable(c.executable, inputs);
  EXPECT_EQ(results[0].elements(), 0);
  EXPECT_TRUE(results[1].same_bits(inputs[1]));
}

TEST(Recurrent, AGpuRefusesByName) {
  Graph graph = parse_graph(text_of({.op = "lstm"}), ops());
  prepare(graph, {}, nullptr);
  try {
    lower_to_program(graph, parse_target("cuda:sm_80"));
    FAIL() << "compiled";
  } catch (const Error& error) {
    EXPECT_THAT(error.diagnostic().text(), ::testing::HasSubstr("recurrent layers"));
  }
}

TEST(Recurrent, AProgramIsWhatItsLoopSays) {
  const Compiled c =
      compiled(text_of({.op = "lstm", .attrs = "{direction = \"bidirectional\"}", .lengths = true}), host_target());
  std::vector<Tensor> inputs = random_inputs(c.graph, {.seed = 1, .symbols = {}});
  for (int64_t i = 0; i < 3; ++i) inputs[1].set_integer(i, i + 1);
  const auto want = interpret(c.graph, inputs), got = interpret(c.program, inputs);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_LE(difference(got[i], want[i]).relative(), 1e-6);
}

}  // namespace
}  // namespace opfuse
