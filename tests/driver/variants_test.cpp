// Variants for given sizes: they run where the sizes fit and nowhere else, and change no result.
#include "driver/variants.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "driver/allocation_count.hpp"
#include "interp/random_inputs.hpp"
#include "opfuse/opfuse.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"
#include "zoo/zoo.hpp"

namespace opfuse {
namespace {

using Sizes = std::map<std::string, int64_t>;

Graph small(const std::string& name) {
  const int64_t resolution = name == "bert_base" ? 16 : 64;
  return build_zoo(name, {.batch = Dim::symbol("n"), .resolution = resolution, .classes = 10, .width = 0.125});
}

/// Two open dimensions, a Linear with GELU's worth of work and a normalization.
Graph two_open() {
  return parse_graph(R"(graph @two(%x: f32[n,s,48]) {
    %w = const rand<1> : f32[48,80]
    %b = const rand<2> : f32[80]
    %m = matmul(%x, %w)  @"mm"(MatMul@17)
    %a = add(%m, %b)  @"bias"(Add@17)
    %r = relu(%a)  @"act"(Relu@17)
    %y = softmax(%r) {axis = -1}  @"soft"(Softmax@17)
    return %y
  })",
                     ops());
}

Executable compiled(const Graph& graph, std::vector<Sizes> specialize, Sizes dims = {}, bool exact = true) {
  return compile(
      Model::from_graph(graph.clone()), Target::host(),
      {.dims = std::move(dims), .specialize = std::move(specialize), .cache = false, .exact = exact, .threads = 1});
}

std::vector<Tensor> inputs_of(const Graph& graph, const Sizes& sizes) {
  return random_inputs(graph, {.seed = 7, .symbols = sizes});
}

/// The variant that runs for these inputs.
Sizes variant_of(const Executable& executable, const std::vector<Tensor>& inputs) {
  Context context = executable.create_context({.threads = 1});
  for (size_t i = 0; i < inputs.size(); ++i)
    context.bind(executable.inputs()[i].name,
                 {inputs[i].dtype(), const_cast<void*>(inputs[i].data()), inputs[i].sizes()});
  return context.variant();
}

class OpenBatch : public testing::TestWithParam<const char*> {};

TEST_P(OpenBatch, VariantRunsForItsSizeAndTheGeneralKernelsForOthers) {
  const Graph graph = small(GetParam());
  const Executable both = compiled(graph, {{{"n", 1}}, {{"n", 2}}}), general = compiled(graph, {}),
                   one = compiled(graph, {}, {{"n", 1}});
  EXPECT_EQ(both.variants(), (std::vector<Sizes>{{{"n", 1}}, {{"n", 2}}}));
  for (const int64_t n : {1, 2, 3, 17}) {
    const std::vector<Tensor> inputs = inputs_of(graph, {{"n", n}});
    EXPECT_EQ(variant_of(both, inputs), n <= 2 ? Sizes({{"n", n}}) : Sizes()) << n;
    for (const OutputComparison& output : compare_outputs(graph, both, inputs, inputs, {}))
      EXPECT_TRUE(output.ok) << "batch " << n << ": " << output.difference.relative();
    if (n == 2) continue;
    const std::vector<Tensor> got = run_executable(both, inputs), want = run_executable(n == 1 ? one : general, inputs);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].same_bits(want[i])) << "batch " << n;
  }
}

TEST_P(OpenBatch, VariantHasTheGroupsOfTheFixedModel) {
  const Graph graph = small(GetParam());
  const Executable both = compiled(graph, {{{"n", 2}}}), fixed = compiled(graph, {}, {{"n", 2}});
  const auto groups = [](const ArtifactProgram& program) {
    std::vector<std::vector<std::string>> sources;
    for (const ArtifactLaunch& launch : program.launches)
      if (!launch.pattern.empty()) sources.push_back(launch.sources);
    return sources;
  };
  EXPECT_EQ(groups(both.artifact().variants.at(0)), groups(fixed.artifact()));
}

INSTANTIATE_TEST_SUITE_P(Models, OpenBatch, testing::Values("resnet18", "bert_base"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Variants, TheFirstThatFitsRunsAndUnnamedDimensionsStayOpen) {
  const Graph graph = two_open();
  const Executable exe = compiled(graph, {{{"n", 1}, {"s", 17}}, {{"s", 17}}, {{"n", 1}}});
  const std::pair<Sizes, Sizes> cases[] = {{{{"n", 1}, {"s", 17}}, {{"n", 1}, {"s", 17}}},
                                           {{{"n", 3}, {"s", 17}}, {{"s", 17}}},
                                           {{{"n", 1}, {"s", 16}}, {{"n", 1}}},
                                           {{{"n", 2}, {"s", 18}}, {}}};
  for (const auto& [sizes, expected] : cases) {
    const std::vector<Tensor> inputs = inputs_of(graph, sizes);
    EXPECT_EQ(variant_of(exe, inputs), expected) << text_of(sizes);
    for (const OutputComparison& output : compare_outputs(graph, exe, inputs, inputs, {}))
      EXPECT_TRUE(output.ok) << text_of(sizes) << ": " << output.difference.relative();
  }
}

TEST(Variants, EqualKernelsAndWeightsAreShared) {
  const Graph graph = small("resnet18");
  const Executable without = compiled(graph, {});
  const Artifact& general = without.artifact();
  const Executable exe = compiled(graph, {{{"n", 1}}, {{"n", 2}}});
  const Artifact& a = exe.artifact();
  ASSERT_EQ(a.variants.size(), 2U);
  EXPECT_EQ(a.variants[0].constant_bytes + a.variants[1].constant_bytes, a.constants.size() - general.constants.size());
  EXPECT_LT(a.constants.size(), general.constants.size() * 3 / 2) << "weights must not be there three times";
  EXPECT_EQ(a.variants[0].code_bytes + a.variants[1].code_bytes, a.code.size() - general.code.size());
  const Graph no_batch = two_open();  // a size that nothing depends on costs no kernel of its own
  EXPECT_GT(compiled(no_batch, {{{"n", 1}, {"s", 8}}}).artifact().variants[0].code_bytes, 0U);
}

class CountingAllocator : public Allocator {
 public:
  int calls = 0;
  void* allocate(size_t bytes, size_t alignment) override {
    ++calls;
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  }
  void deallocate(void* memory, size_t) override { std::free(memory); }
};

TEST(Variants, SizesThatRanBeforeTakeNoNewMemory) {
  const Graph graph = small("resnet18");
  const Executable exe = compiled(graph, {{{"n", 1}}});
  const std::vector<Tensor> one = inputs_of(graph, {{"n", 1}}), three = inputs_of(graph, {{"n", 3}});
  CountingAllocator allocator;
  Context context = exe.create_context({.threads = 1, .allocator = &allocator});
  const auto run = [&](const Tensor& x) {
    context.bind(exe.inputs()[0].name, {x.dtype(), const_cast<void*>(x.data()), x.sizes()});
    context.run();
  };
  run(one[0]), run(three[0]);
  const size_t arena = context.arena_bytes();
  const int calls = allocator.calls;
  EXPECT_GT(calls, 0);
  run(one[0]);
  EXPECT_LT(context.arena_bytes(), arena);
  run(three[0]);
  EXPECT_EQ(allocator.calls, calls) << "scratch and arena are those of the largest";
  run(one[0]);
  const testing_support::AllocationCount count;
  context.run();
  EXPECT_EQ(count.so_far(), 0);
}

TEST(Variants, AFileKeepsThem) {
  const Graph graph = two_open();
  const std::string path =
      (std::filesystem::temp_directory_path() / ("opfuse_variants_" + std::to_string(getpid()) + ".opf")).string();
  const Executable made = compiled(graph, {{{"n", 2}}});
  made.save(path);
  const Executable loaded = Executable::load(path);
  std::remove(path.c_str());
  EXPECT_EQ(loaded.variants(), made.variants());
  EXPECT_EQ(loaded.artifact().variants[0].code_bytes, made.artifact().variants[0].code_bytes);
  for (const int64_t n : {1, 2}) {
    const std::vector<Tensor> inputs = inputs_of(graph, {{"n", n}, {"s", 5}});
    EXPECT_EQ(variant_of(loaded, inputs).size(), n == 2 ? 1U : 0U);
    EXPECT_TRUE(run_executable(loaded, inputs)[0].same_bits(run_executable(made, inputs)[0]));
  }
}

TEST(Variants, AnUnfusedModelHasThemToo) {
  const Graph graph = two_open();
  const Executable exe = compile(Model::from_graph(graph.clone()), Target::host(),
                                 {.specialize = {{{"n", 2}}}, .cache = false, .fused = false});
  EXPECT_EQ(exe.artifact().variants.at(0).launches.size(), exe.artifact().launches.size());
  const std::vector<Tensor> inputs = inputs_of(graph, {{"n", 2}, {"s", 3}});
  EXPECT_EQ(variant_of(exe, inputs), (Sizes{{"n", 2}}));
  for (const OutputComparison& output : compare_outputs(graph, exe, inputs, inputs, {})) EXPECT_TRUE(output.ok);
}

std::string refusal(std::vector<Sizes> specialize, Sizes dims = {}, const char* target = "host") {
  try {
    compile(Model::from_graph(two_open()), Target::named(target),
            {.dims = std::move(dims), .specialize = std::move(specialize), .cache = false});
  } catch (const Error& e) {
    return e.diagnostic().name + ": " + e.diagnostic().text();
  }
  return "compiled";
}

TEST(Variants, SizesThatMakeNoVariantAreRefused) {
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  says(refusal({{{"m", 1}}}), {"unknown_name", "no open dimension 'm'", "open dimensions: n, s"});
  says(refusal({{{"n", 1}}}, {{"n", 2}}), {"unknown_name", "no open dimension 'n'"});
  says(refusal({{{"n", -1}}}), {"bad_dimension", "n=-1"});
  says(refusal({{}}), {"bad_option", "without sizes"});
  says(refusal({{{"n", 1}}, {{"n", 1}}}), {"bad_option", "n=1: given twice"});
  says(refusal({{{"n", 1}}}, {}, "cuda:sm_80"), {"bad_option", "not on cuda:sm_80"});
}

}  // namespace
}  // namespace opfuse
