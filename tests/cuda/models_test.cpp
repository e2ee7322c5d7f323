// Whole models on the emulated device: compiled, loaded by the fake driver, run through arena, stream and graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cuda/compiled.hpp"
#include "cuda/compilers.hpp"
#include "device/driver.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"
#include "zoo/zoo.hpp"

namespace opfuse {
namespace {

struct Built {
  Graph fused;
  Program program;
  Executable executable;
};

Built build(Graph graph, const std::string& target = "cuda:emulated") {
  test::Compiled compiled = test::compiled(std::move(graph), target);
  return {std::move(compiled.fused), std::move(compiled.program),
          Executable::from_artifact(std::move(compiled.artifact))};
}

Graph small(const std::string& name, Dim batch = 1) {
  return build_zoo(name, {.batch = std::move(batch), .resolution = 32, .classes = 10, .width = 0.25});
}

/// One encoder block: attention over 17 positions of width 24 in three heads, then the MLP.
Graph transformer_block() {
  return parse_graph(R"(graph @block(%x: f32[2,17,24]) {
    %g = const rand<1> : f32[24]
    %h = const rand<2> : f32[24]
    %wq = const rand<3> : f32[24,24]
    %wk = const rand<4> : f32[24,24]
    %wv = const rand<5> : f32[24,24]
    %wo = const rand<6> : f32[24,24]
    %w1 = const rand<7> : f32[24,40]
    %w2 = const rand<8> : f32[40,24]
    %heads = const dense<2,17,3,8> : i64[4]
    %flat = const dense<2,17,24> : i64[3]
    %n = layer_norm(%x, %g, %h)
    %q = matmul(%n, %wq)
    %k = matmul(%n, %wk)
    %v = matmul(%n, %wv)
    %qh = reshape(%q, %heads)
    %kh = reshape(%k, %heads)
    %vh = reshape(%v, %heads)
    %qt = transpose(%qh) {perm = [0,2,1,3]}
    %kt = transpose(%kh) {perm = [0,2,3,1]}
    %vt = transpose(%vh) {perm = [0,2,1,3]}
    %s = matmul(%qt, %kt)
    %scale = const splat<0.088> : f32[]
    %ss = mul(%s, %scale)
    %p = softmax(%ss)
    %o = matmul(%p, %vt)
    %ot = transpose(%o) {perm = [0,2,1,3]}
    %of = reshape(%ot, %flat)
    %a = matmul(%of, %wo)
    %r = add(%x, %a)
    %m = layer_norm(%r, %g, %h)
    %u = matmul(%m, %w1)
    %e = gelu(%u)
    %d = matmul(%e, %w2)
    %y = add(%r, %d)
    return %y
  })",
                     ops());
}

/// The same graph with every f32 tensor, constants too, in half precision.
Graph halved(const Graph& graph, DType dtype) {
  std::string text = print(graph);
  const std::string name(name_of(dtype));
  for (size_t at = 0; (at = text.find("f32[", at)) != std::string::npos;) text.replace(at, 3, name);
  ParseOptions options;
  for (const auto& [hash, tensor] : constant_data(graph)) {
    Tensor half(tensor.dtype() == DType::f32 ? dtype : tensor.dtype(), tensor.sizes());
    for (int64_t i = 0; i < tensor.elements(); ++i)
      is_float(tensor.dtype()) ? half.set_real(i, tensor.real(i)) : half.set_integer(i, tensor.integer(i));
    options.data[hash] = half;
  }
  return parse_graph(text, ops(), options);
}

void expect_equal(const Built& built, const std::vector<Tensor>& inputs, double tolerance) {
  CompareOptions options;
  options.group_tolerance = tolerance;
  for (const GroupComparison& g : compare_groups(built.fused, built.program, built.executable, inputs, options))
    EXPECT_TRUE(g.ok) << g.name << ": " << g.difference.relative();
}

class EmulatedModel : public testing::TestWithParam<const char*> {};

TEST_P(EmulatedModel, equals_the_interpreter_group_by_group_and_as_a_whole) {
  const std::string name = GetParam();
  const bool transformer = name == "vit_b_16" || name == "bert_base";  // twelve layers, each emulated for seconds
  const Built built =
      build(build_zoo(name, {.batch = 1, .resolution = 32, .classes = 10, .width = transformer ? 0.125 : 0.25}));
  const std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 3});
  expect_equal(built, inputs, 2e-5);
  const Difference d = difference(run_executable(built.executable, inputs).at(0), interpret(built.fused, inputs).at(0));
  EXPECT_LE(d.relative(), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Zoo, EmulatedModel,
                         testing::Values("resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_large", "unet",
                                         "vit_b_16", "bert_base"));

TEST(EmulatedDevice, a_transformer_block_equals_the_interpreter) {
  const Built built = build(transformer_block());
  expect_equal(built, random_inputs(built.fused, {.seed = 3}), 2e-5);
}

TEST(EmulatedDevice, a_transformer_block_in_half_precision_equals_the_interpreter) {
  for (DType dtype : {DType::f16, DType::bf16}) {
    const Built built = build(halved(transformer_block(), dtype));
    expect_equal(built, random_inputs(built.fused, {.seed = 3}), dtype == DType::f16 ? 2e-3 : 1e-2);
  }
}

class EmulatedHalf : public testing::TestWithParam<std::tuple<const char*, DType>> {};

TEST_P(EmulatedHalf, equals_the_interpreter_group_by_group) {
  const auto& [model, dtype] = GetParam();
  const Built built = build(halved(small(model), dtype));
  // where the image is large enough: on tensor cores, channels last
  size_t tensor_cores = 0, copied = 0;
  for (const Launch& launch : built.program.launches) {
    tensor_cores += launch.schedule.get("mma_m", 0) > 0;
    copied += launch.schedule.get("copy_a", 0) > 0;
  }
  EXPECT_GE(tensor_cores, 10u);
  EXPECT_GE(copied, 8u);
  // conversions are part of the first and last kernels: no launch does nothing else
  EXPECT_EQ(built.program.launches.size(), test::lowered(small(model)).program.launches.size());
  expect_equal(built, random_inputs(built.fused, {.seed = 3}), dtype == DType::f16 ? 2e-3 : 1e-2);
}

INSTANTIATE_TEST_SUITE_P(Zoo, EmulatedHalf,
                         testing::Combine(testing::Values("resnet18", "resnet50", "mobilenet_v2"),
                                          testing::Values(DType::f16, DType::bf16)));

TEST(EmulatedDevice, runs_open_batches_through_one_executable) {
  const Built built = build(small("resnet18", Dim::symbol("batch")));
  for (int64_t batch : {1, 3}) {
    const std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 5, .symbols = {{"batch", batch}}});
    const Difference d =
        difference(run_executable(built.executable, inputs).at(0), interpret(built.fused, inputs).at(0));
    EXPECT_LE(d.relative(), 1e-4) << batch;
  }
}

TEST(EmulatedDevice, a_second_run_of_a_context_replays_the_graph_on_new_inputs) {
  const Built built = build(small("mobilenet_v2"));
  Context context = built.executable.create_context({});
  for (uint64_t seed : {1u, 2u}) {
    const std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = seed});
    context.bind("input", {inputs[0].dtype(), const_cast<void*>(inputs[0].data()), inputs[0].sizes()});
    context.run();
    const ArrayView view = context.output("output");
    const Tensor got = Tensor::wrap(view.dtype, view.shape, view.data, nullptr);
    EXPECT_LE(difference(got, interpret(built.fused, inputs).at(0)).relative(), 1e-4);
  }
}

TEST(EmulatedDevice, times_every_launch_when_profiling) {
  const Built built = build(small("resnet18"));
  ContextOptions options;
  options.profile = true;
  Context context = built.executable.create_context(options);
  const std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 1});
  context.bind("input", {inputs[0].dtype(), const_cast<void*>(inputs[0].data()), inputs[0].sizes()});
  context.run();
  EXPECT_EQ(context.launch_nanoseconds().size(), built.program.launches.size());
  for (int64_t ns : context.launch_nanoseconds()) EXPECT_GT(ns, 0);
}

TEST(EmulatedDevice, an_executable_survives_its_file) {
  const std::string path = testing::TempDir() + "/emulated.opf";
  std::vector<Tensor> inputs, want;
  {
    const Built built = build(small("resnet18"));
    inputs = random_inputs(built.fused, {.seed = 1});
    want = run_executable(built.executable, inputs);
    built.executable.save(path);
  }
  // another model's kernels are in use meanwhile
  const Built other = build(small("mobilenet_v2"));
  const Context kept = other.executable.create_context({});
  const Executable loaded = Executable::load(path);
  std::filesystem::remove(path);
  EXPECT_TRUE(run_executable(loaded, inputs).at(0).same_bits(want.at(0)));
}

class CompleteExecutable : public testing::TestWithParam<const char*> {};

TEST_P(CompleteExecutable, of_every_wanted_model_spills_nothing) {
  if (!cuda::have_nvrtc()) GTEST_SKIP() << cuda::nvrtc_state();
  std::vector<Graph> graphs;
  graphs.push_back(small("resnet50"));
  graphs.push_back(halved(small("resnet50"), DType::f16));
  graphs.push_back(halved(small("mobilenet_v2"), DType::bf16));
  graphs.push_back(transformer_block());
  graphs.push_back(halved(transformer_block(), DType::f16));
  for (Graph& graph : graphs) {
    const Built built = build(std::move(graph), GetParam());
    for (const ArtifactLaunch& launch : built.executable.artifact().launches) {
      EXPECT_GT(launch.device.registers, 0) << launch.name;
      EXPECT_EQ(launch.device.spill_bytes, 0) << launch.name;
    }
  }
}

TEST_P(CompleteExecutable, is_made_without_a_device_and_says_what_it_needs_to_run) {
  if (!cuda::have_nvrtc()) GTEST_SKIP() << cuda::nvrtc_state();
  const Built built = build(small("mobilenet_v2"), GetParam());
  const std::string path = testing::TempDir() + "/device.opf";
  built.executable.save(path);
  const Executable loaded = Executable::load(path);
  EXPECT_EQ(loaded.artifact().code.size(), built.executable.artifact().code.size());
  std::filesystem::remove(path);
  if (cuda::driver_state().find("no driver found") == std::string::npos) GTEST_SKIP() << "this machine has a driver";
  try {
    loaded.create_context({});
    FAIL() << "a context without a driver";
  } catch (const Error& e) {
    EXPECT_EQ(e.diagnostic().name, "no_device");
    EXPECT_THAT(e.diagnostic().message, testing::HasSubstr("searched libcuda.so.1"));
  }
}
INSTANTIATE_TEST_SUITE_P(Architectures, CompleteExecutable, testing::Values("cuda:sm_80", "cuda:sm_90a"),
                         [](const auto& info) { return std::string(info.param).substr(5); });

}  // namespace
}  // namespace opfuse
