// The whole path, on small variants of the built-in models and on every target this machine runs.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "driver/allocation_count.hpp"
#include "driver/pipeline.hpp"
#include "driver/shape_for_target.hpp"
#include "fusion/plan.hpp"
#include "interp/random_inputs.hpp"
#include "opfuse/opfuse.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"
#include "testing/runs_here.hpp"
#include "zoo/zoo.hpp"

namespace opfuse {
namespace {

std::vector<std::string> runnable_targets() {
  std::vector<std::string> names;
  for (const std::string& name : known_targets())
    if (runs_here(parse_target(name))) names.push_back(name);
  return names;
}

struct Built {
  Graph fused;
  Program program;
  Executable executable;
};

Built build(Graph graph, const std::string& target_name, bool fuse = true) {
  const TargetInfo target = parse_target(target_name);
  prepare(graph, {}, nullptr);
  Graph fused = fuse ? apply(graph, plan_graph(graph, target, {})) : std::move(graph);
  if (fuse) shape_for_target(fused, target);
  Program program = lower_to_program(fused, target);
  ArtifactOptions options;
  options.cache = false;
  Executable executable = Executable::from_artifact(build_artifact(program, target, options));
  return {std::move(fused), std::move(program), std::move(executable)};
}

Graph small(const std::string& name, Dim batch = 1) {
  return build_zoo(name, {.batch = std::move(batch), .resolution = 64, .classes = 10, .width = 0.5});
}

struct Case {
  std::string model, target;
};

class EveryTarget : public testing::TestWithParam<Case> {};

TEST_P(EveryTarget, EqualsTheInterpreterGroupByGroup) {
  const Built built = build(small(GetParam().model), GetParam().target);
  const std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 1});
  for (const GroupComparison& group : compare_groups(built.fused, built.program, built.executable, inputs, {}))
    EXPECT_TRUE(group.ok) << group.name << ": " << group.difference.relative() << " of max, padding zero "
                          << group.padding_zero;
  const std::vector<Tensor> others = random_inputs(built.fused, {.seed = 2});
  for (const OutputComparison& output : compare_outputs(built.fused, built.executable, inputs, others, {})) {
    EXPECT_TRUE(output.ok) << output.name << ": " << output.difference.relative();
    EXPECT_GT(output.change, 0.1) << "two inputs hardly differ: equality would prove nothing";
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string& target : runnable_targets())
    for (const char* model : {"resnet18", "resnet50", "mobilenet_v2"}) all.push_back({model, target});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, EveryTarget, testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = info.param.model + "_" + info.param.target;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

class HostModels : public testing::TestWithParam<const char*> {};

TEST_P(HostModels, EqualTheInterpreterGroupByGroup) {
  const bool text = std::string(GetParam()) == "bert_base";
  const Built built =
      build(build_zoo(GetParam(), {.resolution = text ? 16 : 64, .classes = 10, .width = 0.125}), "host");
  const std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 1});
  for (const GroupComparison& group : compare_groups(built.fused, built.program, built.executable, inputs, {}))
    EXPECT_TRUE(group.ok) << group.name << ": " << group.difference.relative() << " of max";
  for (const OutputComparison& output : compare_outputs(built.fused, built.executable, inputs, inputs, {}))
    EXPECT_TRUE(output.ok) << output.name << ": " << output.difference.relative();
}

INSTANTIATE_TEST_SUITE_P(Tokens, HostModels, testing::Values("convnext_tiny", "vit_b_16", "swin_t", "bert_base"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Compile, LayerNormIsAModuleInEverySpelling) {
  for (const int64_t opset : {13, 17}) {
    Graph graph = build_zoo("vit_b_16", {.resolution = 32, .classes = 10, .width = 0.125, .opset = opset});
    prepare(graph, {}, nullptr);
    EXPECT_EQ(plan_graph(graph, parse_target("host"), {}).module_counts().at("FusedLayerNorm"), 25) << opset;
  }
  const Built built = build(build_zoo("bert_base", {.resolution = 16, .width = 0.125, .opset = 13}), "host");
  const std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 1});
  for (const OutputComparison& output : compare_outputs(built.fused, built.executable, inputs, inputs, {}))
    EXPECT_TRUE(output.ok) << output.name << ": " << output.difference.relative();
}

TEST(Compile, UnfusedModelEqualsToo) {
  const Built built = build(small("mobilenet_v2"), "host", false);
  const std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 3});
  for (const OutputComparison& output : compare_outputs(built.fused, built.executable, inputs, inputs, {}))
    EXPECT_TRUE(output.ok) << output.difference.relative();
}

TEST(Compile, UnboundBatchServesEveryBatch) {
  const Built built = build(small("resnet18", Dim::symbol("n")), "host");
  for (int64_t n : {1, 2, 3, 17}) {
    const std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 4, .symbols = {{"n", n}}});
    for (const OutputComparison& output : compare_outputs(built.fused, built.executable, inputs, inputs, {}))
      EXPECT_TRUE(output.ok) << "batch " << n << ": " << output.difference.relative();
  }
}

TEST(Compile, SameBitsAtAnyNumberOfThreads) {
  const Built built = build(small("mobilenet_v2"), "host");
  const std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 5});
  const std::vector<Tensor> one = run_executable(built.executable, inputs, {.threads = 1});
  for (int threads : {2, 3, 5})
    EXPECT_TRUE(run_executable(built.executable, inputs, {.threads = threads})[0].same_bits(one[0])) << threads;
}

TEST(Compile, SameKernelsAndBytesTwice) {
  const Built first = build(small("resnet18"), "host"), second = build(small("resnet18"), "host");
  const Artifact &a = first.executable.artifact(), &b = second.executable.artifact();
  EXPECT_TRUE(std::equal(a.code.begin(), a.code.end(), b.code.begin(), b.code.end()));
  EXPECT_TRUE(std::equal(a.constants.begin(), a.constants.end(), b.constants.begin(), b.constants.end()));
}

TEST(Context, ManyAtOnceOnOneExecutableGiveTheSameBits) {
  const Built built = build(small("resnet18"), "host");
  const std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 6});
  const Tensor want = run_executable(built.executable, inputs, {.threads = 1})[0];
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int run = 0; run < 5; ++run)
        if (!run_executable(built.executable, inputs, {.threads = 1 + t % 2})[0].same_bits(want)) wrong.fetch_add(1);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Context, AllocatesNothingOnceWarm) {
  const Built built = build(small("mobilenet_v2"), "host");
  std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 7});
  Context context = built.executable.create_context({.threads = 2});
  context.bind("input", {DType::f32, inputs[0].mutable_data(), inputs[0].sizes()});
  context.run();
  const testing_support::AllocationCount count;
  for (int run = 0; run < 3; ++run) context.run();
  EXPECT_EQ(count.so_far(), 0);
}

TEST(Context, ArenaIsSmallerThanAllIntermediatesTogether) {
  const Built fused = build(small("mobilenet_v2"), "host"), unfused = build(small("mobilenet_v2"), "host", false);
  std::vector<Tensor> inputs = random_inputs(fused.fused, {.seed = 8});
  Context a = fused.executable.create_context({.threads = 1}), b = unfused.executable.create_context({.threads = 1});
  for (Context* context : {&a, &b}) {
    context->bind("input", {DType::f32, inputs[0].mutable_data(), inputs[0].sizes()});
    context->run();
  }
  EXPECT_LT(a.arena_bytes(), a.intermediate_bytes());
  EXPECT_LE(a.arena_bytes(), b.arena_bytes());  // equal: results of elementwise nodes lie in their operands' place
  EXPECT_LT(a.launches().size(), b.launches().size());
}

class CountingExecutor final : public Executor {
 public:
  int calls = 0;
  int workers() const override { return 3; }
  void run(int64_t parts, PartFunction fn, void* context) override {
    ++calls;
    for (int64_t part = parts; part-- > 0;) fn(context, part, static_cast<int>(part % 3));  // any order, any worker
  }
};

class CountingAllocator final : public Allocator {
 public:
  int live = 0, total = 0;
  void* allocate(size_t bytes, size_t alignment) override {
    ++live, ++total;
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  }
  void deallocate(void* memory, size_t) override {
    --live;
    std::free(memory);
  }
};

TEST(Context, UsesTheHostsExecutorAndAllocator) {
  const Built built = build(small("resnet18"), "host");
  std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = 9});
  const Tensor want = run_executable(built.executable, inputs, {.threads = 1})[0];
  CountingExecutor executor;
  CountingAllocator allocator;
  {
    Context context = built.executable.create_context({.executor = &executor, .allocator = &allocator});
    context.bind("input", {DType::f32, inputs[0].mutable_data(), inputs[0].sizes()});
    context.run();
    const ArrayView out = context.output("output");
    EXPECT_TRUE(Tensor::wrap(out.dtype, out.shape, out.data, nullptr).same_bits(want));
    EXPECT_EQ(executor.calls, static_cast<int>(context.launches().size()));
    EXPECT_GT(allocator.total, 0);
  }
  EXPECT_EQ(allocator.live, 0);
}

TEST(Api, PlanIsEditedSavedAndAppliedAgain) {
  const Model model = Model::from_graph(small("resnet18"));
  const Target cpu = Target::host();
  Plan plan = opfuse::plan(model, cpu);
  EXPECT_EQ(plan.modules().at("FusedConvBNAddReLU"), 8);
  std::string id;
  for (const PlanEntry& entry : plan.entries())
    if (entry.apply && entry.rule == "ConvBNAddReLU") id = entry.id;
  plan.at(id).apply = false;
  const Plan again = Plan::from_json(plan.json(), model);
  EXPECT_EQ(again.modules().at("FusedConvBNAddReLU"), 7);
  EXPECT_THROW(plan.at("ConvBNReLU@nowhere"), Error);
  EXPECT_THROW(Plan::from_json(plan.json(), Model::from_graph(small("mobilenet_v2"))), Error);
  const Executable exe = compile(opfuse::apply(model, again).model, cpu, {.cache = false});
  EXPECT_GT(exe.artifact().launches.size(), 22U);
}

TEST(Reference, AnOperatorWithoutAKernelIsRefusedOnceWithAHint) {
  Graph graph;
  Value* x = graph.add_input("x", {DType::f32, {2, 3}});
  Node* node = graph.add_node(op_named("hardmax"), AttrMap{{"axis", int64_t{0}}, {"flatten", true}}, {x}, 1,
                              {{"hm", "Hardmax", "", 11}});
  node->output()->name = "y";
  graph.set_outputs({node->output()});
  try {
    lower_to_program(graph, host_target());
    FAIL() << "was lowered";
  } catch (const Error& e) {
    EXPECT_EQ(e.diagnostic().name, "uncompilable");
    EXPECT_NE(e.diagnostic().text().find("hm (Hardmax)"), std::string::npos);
    EXPECT_NE(e.diagnostic().text().find("--allow-reference runs Hardmax"), std::string::npos);
  }
}

}  // namespace
}  // namespace opfuse
