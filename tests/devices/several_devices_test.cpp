// Whole models, narrow, over a plug-in, an emulated GPU and the host: what the interpreter computes, before and after
// saving. Every seventh node and its group are kept on the host, so that values cross between all three.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "base/temporary_folder.hpp"
#include "driver/compilation.hpp"
#include "driver/placement.hpp"
#include "fusion/names.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "ir/placed.hpp"
#include "opfuse/runtime.hpp"
#include "ops/registry.hpp"
#include "zoo/zoo.hpp"

namespace opfuse {
namespace {

std::vector<Tensor> run_on(const Executable& executable, std::vector<Tensor> inputs) {
  Context context = executable.create_context({.threads = 2});
  for (size_t i = 0; i < inputs.size(); ++i)
    context.bind(executable.inputs()[i].name, {inputs[i].dtype(), inputs[i].mutable_data(), inputs[i].sizes()});
  context.run();
  std::vector<Tensor> results;
  for (const TensorInfo& output : executable.outputs()) {
    const ArrayView view = context.output(output.name);
    Tensor t(view.dtype, view.shape);
    std::memcpy(t.mutable_data(), view.data, t.bytes());
    results.push_back(std::move(t));
  }
  return results;
}

void expect_like(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t r = 0; r < want.size(); ++r) {
    double largest = 0, off = 0;
    for (int64_t i = 0; i < want[r].elements(); ++i) {
      largest = std::max(largest, std::fabs(want[r].real(i)));
      off = std::max(off, std::fabs(got[r].real(i) - want[r].real(i)));
    }
    EXPECT_LE(off, 1e-3 * largest);
    EXPECT_GT(largest, 0);
  }
}

/// Everything that can be there on the plug-in, then on the GPU, every seventh node on the host.
CompilationOptions mixed(const Graph& graph, std::vector<std::string> devices) {
  CompilationOptions options;
  options.accelerators = std::move(devices);
  for (const std::string& device : options.accelerators) options.place.emplace_back("*", device);
  Compilation probe(graph, host_target(), {});
  probe.run_to(Milestone::prepared);
  const NodeNames names(probe.prepared);
  size_t at = 0;
  for (const Node* node : probe.prepared.nodes())
    if (at++ % 7 == 6) options.place.emplace_back(names.of(node), "cpu");
  return options;
}

std::map<std::string, int> pieces_of(const Graph& fused) {
  std::map<std::string, int> pieces;
  for (const Node* node : fused.nodes())
    if (node->op == placed_op() && placed_kind(*node) == PlacedKind::run) ++pieces[placed_device(*node)];
  return pieces;
}

std::string placements_of(const Compilation& made) {
  std::string text;
  for (const Placement& p : made.placed->placements) text += text_of(p) + "\n";
  return text;
}

/// No value is copied twice in one direction to one device.
void expect_each_once(const Graph& fused) {
  std::map<std::pair<const Value*, std::string>, int> copies;
  for (const Node* node : fused.nodes()) {
    if (node->op != placed_op() || placed_kind(*node) == PlacedKind::run) continue;
    EXPECT_EQ(++copies[std::make_pair(node->input(0), node->pattern)], 1) << node->label;
  }
}

class SeveralDevices : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { setenv("OPFUSE_PLUGINS", OPFUSE_PLUGIN_FOLDER, 1); }
};

TEST_P(SeveralDevices, compute_what_the_interpreter_does) {
  const std::string name = GetParam();
  ZooOptions small{.resolution = name == "bert_base" ? 7 : 32, .classes = 10, .width = 0.125};
  const Graph graph = build_zoo(name, small);
  const Compilation made = compile_graph(graph, host_target(), mixed(graph, {"example-npu", "cuda:emulated"}));
  std::map<std::string, int> pieces = pieces_of(made.fused);
  EXPECT_GT(pieces["example-npu"], 2) << placements_of(made);
  EXPECT_GT(pieces["cuda:emulated"], 2) << placements_of(made);
  expect_each_once(made.fused);
  const std::vector<Tensor> inputs = random_inputs(graph, {.seed = 1});
  const std::vector<Tensor> want = interpret(graph, inputs);
  const Executable executable = Executable::from_artifact(made.artifact);
  expect_like(run_on(executable, inputs), want);
  const TemporaryFolder folder;
  executable.save(folder.path("m.opf"));
  expect_like(run_on(Executable::load(folder.path("m.opf")), inputs), want);
}

INSTANTIATE_TEST_SUITE_P(Models, SeveralDevices, testing::Values("resnet50", "mobilenet_v2", "bert_base", "vit_b_16"),
                         [](const auto& info) { return std::string(info.param); });

constexpr const char* kOpen = R"(graph (%x: f32[batch,12,33]) {
  %w = const rand<1> : f32[33,18]
  %v = const rand<2> : f32[18,33]
  %s = const splat<1> : f32[33]
  %m = matmul(%x, %w) @"first"
  %g = gelu(%m) @"act"
  %n = matmul(%g, %v) @"second"
  %r = add(%n, %x) @"residual"
  %l = layer_norm(%r, %s) @"norm"
  %y = softmax(%l) @"soft"
  return %y })";

TEST(OpenSizes, run_on_every_device_at_any_of_them) {
  setenv("OPFUSE_PLUGINS", OPFUSE_PLUGIN_FOLDER, 1);
  const Graph graph = parse_graph(kOpen, ops());
  CompilationOptions options;
  options.accelerators = {"example-npu", "cuda:emulated"};
  options.place = {{"*", "example-npu"}, {"*", "cuda:emulated"}};
  const Compilation made = compile_graph(graph, host_target(), options);
  const std::map<std::string, int> pieces = pieces_of(made.fused);
  EXPECT_EQ(pieces.at("example-npu"), 2);
  EXPECT_GE(pieces.at("cuda:emulated"), 1);
  const TemporaryFolder folder;
  const Executable executable = Executable::from_artifact(made.artifact);
  executable.save(folder.path("m.opf"));
  const Executable loaded = Executable::load(folder.path("m.opf"));
  for (const int64_t batch : {3, 1, 5}) {
    Graph sized = graph.clone();
    sized.bind_dimensions({{"batch", batch}});
    const std::vector<Tensor> inputs = random_inputs(sized, {.seed = 7});
    const std::vector<Tensor> want = interpret(sized, inputs);
    expect_like(run_on(executable, inputs), want);
    expect_like(run_on(loaded, inputs), want);
    std::vector<std::thread> threads;  // contexts share the devices
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        for (int again = 0; again < 4; ++again) expect_like(run_on(loaded, inputs), want);
      });
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace opfuse
