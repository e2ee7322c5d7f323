// Random graphs over random tables of what a device takes: every placement is acyclic, computes what the interpreter
// does, and is the same after saving and loading. A plug-in that answers nonsense is an error, never a wrong value.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/temporary_folder.hpp"
#include "driver/compilation.hpp"
#include "driver/placement.hpp"
#include "interp/interpreter.hpp"
#include "ir/placed.hpp"
#include "opfuse/runtime.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

constexpr int64_t kSide = 6;
constexpr const char* kOps[] = {"add", "sub", "mul", "relu", "tanh", "neg", "sigmoid", "matmul"};

bool is_binary(const std::string& op) { return op == "add" || op == "sub" || op == "mul"; }

using Draws = std::mt19937;
size_t below(Draws& random, size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random); }

/// Two inputs, operators over whatever is there already; what nobody reads is a result, and some that is read.
std::string random_graph(Draws& random) {
  const std::string type = "f32[6,6]";
  std::string text = "graph (%a: " + type + ", %b: " + type + ") {\n  %w = const rand<3> : " + type + "\n";
  std::vector<std::string> values{"%a", "%b"};
  std::vector<bool> read{true, true};
  const size_t nodes = 4 + below(random, 14);
  for (size_t i = 0; i < nodes; ++i) {
    const std::string op = kOps[below(random, std::size(kOps))];
    const auto operand = [&] {
      const size_t at = below(random, 3) == 0 ? below(random, values.size())
                                              : values.size() - 1 - below(random, std::min<size_t>(values.size(), 4));
      read[at] = true;
      return values[at];
    };
    std::string operands = operand();
    if (is_binary(op)) operands += ", " + operand();
    if (op == "matmul") operands += ", %w";
    values.push_back("%v" + std::to_string(i));
    read.push_back(false);
    text += "  " + values.back() + " = " + op + "(" + operands + ") @\"n" + std::to_string(i) + "\"\n";
  }
  std::string results;
  for (size_t v = 2; v < values.size(); ++v)
    if (!read[v] || below(random, 6) == 0) results += (results.empty() ? "" : ", ") + values[v];
  return text + "  return " + results + " }";
}

/// Some operators, and composites of short chains of them that others may read.
std::string random_table(Draws& random) {
  std::string text =
      "schema = 1\nkind = \"accelerator\"\n[device]\nmultiply_adds_per_second = 1e12\n"
      "bytes_per_second = 1e11\nlaunch_seconds = 1e-6\n[transfer]\nbytes_per_second = 1e10\n"
      "seconds = 1e-6\n[plugin]\nlibrary = \"libany_device.so\"\n";
  if (below(random, 3) == 0) text += "[limits]\noperands = " + std::to_string(2 + below(random, 3)) + "\n";
  const size_t composites = 1 + below(random, 4);
  for (size_t c = 0; c < composites; ++c) {
    std::string topology;
    const size_t length = 1 + below(random, 4);
    for (size_t i = 0; i < length; ++i) {
      const std::string op = kOps[below(random, std::size(kOps))];
      const std::string step = op == "matmul" ? "matmul(constant)" : op;
      topology += (i ? " -> " : "") + (i == 0 ? "first:" + step : below(random, 4) == 0 ? "[" + step + "]" : step);
    }
    text += "[[composite]]\nname = \"C" + std::to_string(c) + "\"\ntopology = \"" + topology + "\"\nroot = \"first\"\n";
  }
  return text;
}

Tensor drawn(Draws& random) {
  Tensor t(DType::f32, {kSide, kSide});
  for (int64_t i = 0; i < t.elements(); ++i) t.set_real(i, std::uniform_real_distribution<float>(-1, 1)(random));
  return t;
}

std::vector<Tensor> results_of(const Executable& executable, std::vector<Tensor>& inputs) {
  Context context = executable.create_context({.threads = 1});
  const char* names[] = {"a", "b"};
  for (size_t i = 0; i < 2; ++i) context.bind(names[i], {DType::f32, inputs[i].mutable_data(), {kSide, kSide}});
  context.run();
  std::vector<Tensor> results;
  for (const TensorInfo& output : executable.outputs()) {
    const ArrayView view = context.output(output.name);
    Tensor t(DType::f32, view.shape);
    std::memcpy(t.mutable_data(), view.data, t.bytes());
    results.push_back(std::move(t));
  }
  return results;
}

class Devices : public testing::Test {
 protected:
  void SetUp() override {
    setenv("OPFUSE_PLUGINS", OPFUSE_PLUGIN_FOLDER, 1);
    unsetenv("ANY_DEVICE_LIES");
  }
  void TearDown() override { unsetenv("ANY_DEVICE_LIES"); }

  CompilationOptions options_for(const std::string& table, const std::string& name) {
    const std::string path = folder_.path(name + ".toml");
    std::ofstream(path) << table;
    CompilationOptions options;
    options.accelerators = {path};
    options.place = {{"*", name}};
    return options;
  }

  TemporaryFolder folder_;
};

void expect_near(const std::vector<Tensor>& got, const std::vector<Tensor>& want, const std::string& text) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t r = 0; r < want.size(); ++r)
    for (int64_t i = 0; i < want[r].elements(); ++i)
      ASSERT_NEAR(got[r].real(i), want[r].real(i), 1e-4 * std::max(1.0, std::fabs(want[r].real(i)))) << text;
}

TEST_F(Devices, random_graphs_over_random_tables_are_what_the_interpreter_computes) {
  int pieces = 0, several = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    Draws random(seed);
    const std::string text = random_graph(random), table = random_table(random);
    const Graph graph = parse_graph(text, ops());
    const std::string name = "any" + std::to_string(seed);
    SCOPED_TRACE(text + "\n" + table);
    const Compilation made = compile_graph(graph, host_target(), options_for(table, name));
    int here = 0;
    for (const Node* node : made.fused.nodes()) {
      if (node->op != placed_op() || placed_kind(*node) != PlacedKind::run) continue;
      ++here;
      for (const Value* v : node->inputs) {  // acyclic, and so convex: whole pieces stand in an order
        if (!v->producer) continue;
        EXPECT_LT(made.fused.position(v->producer), made.fused.position(node));
      }
    }
    pieces += here, several += here > 1;
    for (const Placement& p : made.placed->placements) EXPECT_FALSE(p.code.empty() || p.reason.empty()) << p.group;
    std::vector<Tensor> inputs{drawn(random), drawn(random)};
    const std::vector<Tensor> want = interpret(graph, inputs);
    const Executable executable = Executable::from_artifact(made.artifact);
    expect_near(results_of(executable, inputs), want, text);
    if (seed % 10 != 0 || HasFatalFailure()) continue;
    const std::string file = folder_.path("m.opf");
    executable.save(file);
    expect_near(results_of(Executable::load(file), inputs), want, text);
  }
  EXPECT_GT(pieces, 200);
  EXPECT_GT(several, 60);
}

TEST_F(Devices, a_plug_in_that_lies_is_an_error_that_names_it_or_is_done_without) {
  Draws random(1);
  const Graph graph = parse_graph(
      "graph (%a: f32[6,6], %b: f32[6,6]) {\n %x = add(%a, %b) @\"x\"\n %y = tanh(%x) @\"y\"\n return %y }", ops());
  std::string table = random_table(random);
  table =
      table.substr(0, table.find("[[composite]]")) + "[[composite]]\nname = \"C\"\ntopology = \"first:add -> tanh\"\n";
  std::vector<Tensor> inputs{drawn(random), drawn(random)};
  const std::vector<Tensor> want = interpret(graph, inputs);
  int number = 0;
  for (const char* lie :
       {"", "abi", "open", "describe", "target", "accept", "status", "promise", "compile", "allocate", "copy", "run"}) {
    SCOPED_TRACE(lie);
    setenv("ANY_DEVICE_LIES", lie, 1);
    const std::string name = "liar" + std::to_string(number++);
    CompilationOptions options = options_for(table, name);
    const bool refuses = std::string(lie) == "accept";  // it says no, in a text without an end
    try {
      const Executable executable = Executable::from_artifact(compile_graph(graph, host_target(), options).artifact);
      expect_near(results_of(executable, inputs), want, lie);
      EXPECT_TRUE(*lie == 0 || refuses);
    } catch (const Error& error) {
      EXPECT_FALSE(*lie == 0 || refuses) << error.what();
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  }
}

TEST_F(Devices, a_saved_program_names_the_plug_in_that_it_lacks) {
  Draws random(1);
  const Graph graph = parse_graph(
      "graph (%a: f32[6,6], %b: f32[6,6]) {\n %x = add(%a, %b) @\"x\"\n %y = tanh(%x) @\"y\"\n return %y }", ops());
  std::string table = random_table(random);
  table =
      table.substr(0, table.find("[[composite]]")) + "[[composite]]\nname = \"C\"\ntopology = \"first:add -> tanh\"\n";
  const std::string file = folder_.path("m.opf");
  const Compilation made = compile_graph(graph, host_target(), options_for(table, "saved"));
  Executable::from_artifact(made.artifact).save(file);
  setenv("OPFUSE_PLUGINS", "/nowhere", 1);
  try {
    Executable::load(file);
    FAIL() << "loaded without its plug-in";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().name, "no_device");
    EXPECT_NE(std::string(error.what()).find("saved"), std::string::npos);
  }
}

}  // namespace
}  // namespace opfuse
