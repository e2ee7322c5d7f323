// Open dimensions: an executable compiled once computes what the model with fixed sizes does, for every size that is
// legal, and refuses every other before it reads an element.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "interp/random_inputs.hpp"
#include "opfuse/opfuse.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"

namespace opfuse {
namespace {

struct Case {
  const char* name;
  const char* text;
  std::vector<std::vector<int64_t>> sizes{};  ///< by symbol in order; empty: 0 to 4 for each
};

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }

Executable open_executable(const Graph& graph, const char* target = "host") {
  return compile(Model::from_graph(graph.clone()), Target::named(target), {.cache = false, .threads = 1});
}

std::vector<SymbolValues> all_sizes(const Graph& graph, const std::vector<std::vector<int64_t>>& given) {
  std::vector<SymbolValues> all = {{}};
  size_t at = 0;
  for (const std::string& symbol : graph.symbols()) {
    std::vector<SymbolValues> longer;
    const std::vector<int64_t> sizes = given.empty() ? std::vector<int64_t>{0, 1, 2, 3, 4} : given.at(at++);
    for (const SymbolValues& values : all)
      for (int64_t size : sizes) {
        longer.push_back(values);
        longer.back()[symbol] = size;
      }
    all = std::move(longer);
  }
  return all;
}

/// The model with these sizes, or nothing where it has no shapes.
std::optional<Graph> fixed(const Graph& graph, const SymbolValues& sizes) {
  Graph copy = graph.clone();
  try {
    copy.bind_dimensions(sizes);
    return copy;
  } catch (const Error&) {
    return std::nullopt;
  }
}

class OpenDimensions : public testing::TestWithParam<Case> {};

TEST_P(OpenDimensions, AreRightOrRefused) {
  const Graph graph = parse_graph(GetParam().text, ops());
  const Executable executable = open_executable(graph);
  int legal = 0, refused = 0;
  for (const SymbolValues& sizes : all_sizes(graph, GetParam().sizes)) {
    const std::optional<Graph> model = fixed(graph, sizes);
    const std::vector<Tensor> inputs = random_inputs(graph, {.seed = 3, .symbols = sizes});
    if (!model) {
      ++refused;
      try {
        run_executable(executable, inputs);
        ADD_FAILURE() << text_of(sizes) << " ran, though the model has no shapes at these sizes";
      } catch (const Error& error) {
        EXPECT_EQ(error.diagnostic().name, "shape_mismatch") << error.what();
        EXPECT_NE(error.diagnostic().node, "") << error.what();
        EXPECT_NE(error.diagnostic().hint, "") << error.what();
        EXPECT_FALSE(error.diagnostic().operands.empty()) << error.what();
      }
      continue;
    }
    ++legal;
    try {
      const std::vector<Tensor> got = run_executable(executable, inputs);
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_EQ(Shape::of(got[i].sizes()).text(), model->outputs()[i]->type.shape.text()) << text_of(sizes);
      for (const OutputComparison& output : compare_outputs(*model, executable, inputs, inputs, {}))
        EXPECT_TRUE(output.ok) << text_of(sizes) << ": " << output.difference.relative();
    } catch (const Error& error) {
      ADD_FAILURE() << text_of(sizes) << ": " << error.what();
    }
  }
  EXPECT_GT(legal, 0);
  EXPECT_GT(refused, 0);
}

const Case kCases[] = {
    {"AddConstant", R"(graph (%x: f32[n,4]) {
       %c = const rand<1> : f32[3,1]  %y = add(%x, %c) return %y })"},
    {"AddInputs", R"(graph (%a: f32[n,5], %b: f32[m,5]) { %y = add(%a, %b) return %y })", {{0, 1, 2, 3}, {0, 1, 2, 3}}},
    {"AddThree",
     R"(graph (%a: f32[n,5], %b: f32[m,5], %c: f32[k,1]) {
       %s = add(%a, %b) %r = relu(%s) %y = mul(%c, %r) return %y, %r })",
     {{0, 1, 3}, {0, 1, 3}, {0, 1, 3}}},
    {"AddLastAxis",
     R"(graph (%a: f32[2,n], %b: f32[m]) { %s = sigmoid(%b) %y = mul(%a, %s) return %y })",
     {{0, 1, 2, 37}, {0, 1, 2, 37}}},
    {"Where",
     R"(graph (%c: bool[n], %a: f32[3,m], %b: f32[k]) { %y = where(%c, %a, %b) return %y })",
     {{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 3}}},
    {"PRelu", R"(graph (%x: f32[2,n,3]) { %s = const rand<1> : f32[4,1] %y = prelu(%x, %s) return %y })"},
    {"MatMulBatch",
     R"(graph (%a: f32[n,3,4], %b: f32[m,4,5]) { %y = matmul(%a, %b) return %y })",
     {{0, 1, 2, 3}, {0, 1, 2, 3}}},
    {"MatMulInner", R"(graph (%a: f32[2,k]) { %w = const rand<1> : f32[4,5] %y = matmul(%a, %w) return %y })"},
    {"GemmWithC",
     R"(graph (%a: f32[n,4], %c: f32[m,5]) {
       %w = const rand<1> : f32[4,5] %y = gemm(%a, %w, %c) return %y })",
     {{0, 1, 2, 3}, {0, 1, 2, 3}}},
    {"Einsum",
     R"(graph (%a: f32[n,3,4], %b: f32[m,4,5]) {
       %y = einsum(%a, %b) {equation = "bij,bjk->bik"} return %y })",
     {{0, 1, 2, 3}, {0, 1, 2, 3}}},
    {"ConvChannels", R"(graph (%x: f32[1,c,6,6]) {
       %w = const rand<1> : f32[8,3,3,3] %y = conv(%x, %w) return %y })"},
    {"ConvWindow", R"(graph (%x: f32[1,3,h,6]) {
       %w = const rand<1> : f32[8,3,3,3] %y = conv(%x, %w) return %y })"},
    {"MaxPoolWindow", R"(graph (%x: f32[1,3,h,6]) {
       %y = max_pool(%x) {kernel_shape = [3,3], strides = [1,2]} return %y })"},
    {"MaxPoolCeil", R"(graph (%x: f32[1,3,h,6]) {
       %y = max_pool(%x) {kernel_shape = [3,3], strides = [2,2], ceil_mode = true} return %y })"},
    {"BatchNorm", R"(graph (%x: f32[2,c,5]) { %s = const rand<1> : f32[3] %v = const splat<1.5> : f32[3]
       %y = batch_norm(%x, %s, %s, %s, %v) return %y })"},
    {"LayerNorm",
     R"(graph (%x: f32[2,n,c], %b: f32[n,c]) { %s = const rand<1> : f32[5]
       %z = relu(%x) %y = layer_norm(%z, %s, %b) return %y })",
     {{1, 4, 5}, {0, 1, 3}}},
    {"LayerNormOfInputs",
     R"(graph (%x: f32[n,c], %s: f32[k]) { %y, %m, %d = layer_norm(%x, %s) return %y, %m })",
     {{1, 3, 16}, {1, 3, 16}, {1, 2}}},
    {"GroupNorm",
     R"(graph (%x: f32[2,c,5], %s: f32[c]) {
       %y = group_norm(%x, %s, %s) {num_groups = 2} return %y })",
     {{2, 3, 4}}},
    {"Concat",
     R"(graph (%a: f32[n,4], %b: f32[m,4]) { %y = concat(%a, %b) {axis = 1} return %y })",
     {{1, 2, 3}, {1, 2, 3}}},
    {"ReshapeProduct", R"(graph (%x: f32[n,6]) {
       %t = const dense<4,3> : i64[2] %y = reshape(%x, %t) return %y })"},
    {"ReshapeRest", R"(graph (%x: f32[n,6]) {
       %t = const dense<-1,4> : i64[2] %y = reshape(%x, %t) return %y })"},
    {"Split", R"(graph (%x: f32[n,6]) { %a, %b = split(%x) {axis = 0, split = [1,2]} return %a, %b })"},
    {"Squeeze", R"(graph (%x: f32[n,6]) { %y = squeeze(%x) {axes = [0]} return %y })"},
    {"DepthToSpace", R"(graph (%x: f32[1,c,2,2]) { %y = depth_to_space(%x) {blocksize = 2} return %y })"},
    {"SpaceToDepth", R"(graph (%x: f32[1,3,h,2]) { %y = space_to_depth(%x) {blocksize = 2} return %y })"},
    {"TopK", R"(graph (%x: f32[2,n]) { %v, %i = top_k(%x) {k = 3} return %v, %i })", {{2, 3, 7}}},
    {"ArgMax", R"(graph (%x: f32[2,n]) { %y = arg_max(%x) {axis = 1} return %y })"},
    {"GatherElements",
     R"(graph (%x: f32[n,3], %i: i64[4,m]) {
       %y = gather_elements(%x, %i) {axis = 0} return %y })",
     {{1, 5}, {1, 3, 4}}},
    {"GatherOfEmpty", R"(graph (%x: f32[n,3], %i: i64[2]) { %y = gather(%x, %i) {axis = 0} return %y })"},
    {"ScatterElements",
     R"(graph (%x: f32[4,3], %i: i64[2,m], %u: f32[2,k]) {
       %y = scatter_elements(%x, %i, %u) {axis = 0} return %y })",
     {{1, 2, 3}, {1, 2, 3}}},
    {"PadReflect", R"(graph (%x: f32[n,3]) { %p = const dense<1,0,1,0> : i64[4]
       %y = pad(%x, %p) {mode = "edge"} return %y })"},
    {"PadCuts", R"(graph (%x: f32[n,3]) { %p = const dense<-2,0,0,0> : i64[4] %y = pad(%x, %p) return %y })"},
    {"MovedPositions", R"(graph (%x: f32[2,n,3]) { %t = const rand<1> : f32[5,3] %s = shape(%x)
       %z = const dense<0> : i64[1] %one = const dense<1> : i64[1] %two = const dense<2> : i64[1]
       %d = gather(%s, %one) {axis = 0} %e = add(%d, %two) %p = slice(%t, %two, %e, %z) %y = add(%x, %p) return %y })"},
    {"SkipOfOddSizes",
     R"(graph (%x: f32[1,3,h,4]) {
       %p = max_pool(%x) {kernel_shape = [2,2], strides = [2,2]}
       %s = const dense<1.0,1.0,2.0,2.0> : f32[4]
       %u = resize(%p, _, %s) {mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"}
       %y = concat(%x, %u) {axis = 1} return %y })",
     {{2, 3, 4, 5}}},
};

/// The only rule that an open extent has and a fixed one has not: a window that strides, rounded down, is not cut.
TEST(OpenPools, HoldAWindowThatAFixedExtentCuts) {
  const Graph graph = parse_graph(R"(graph (%x: f32[1,3,h,6]) {
    %y = max_pool(%x) {kernel_shape = [3,3], strides = [2,2]} return %y })",
                                  ops());
  const SymbolValues small = {{"h", 2}};
  try {
    run_executable(open_executable(graph), random_inputs(graph, {.seed = 3, .symbols = small}));
    ADD_FAILURE() << "a window was cut";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().name, "shape_mismatch");
    EXPECT_NE(std::string(error.what()).find("--dim"), std::string::npos) << error.what();
  }
  EXPECT_EQ(fixed(graph, small)->outputs()[0]->type.shape.text(), "[1,3,1,2]");
}

INSTANTIATE_TEST_SUITE_P(Operators, OpenDimensions, testing::ValuesIn(kCases), name_of);

const Case kAlways[] = {
    {"Slice", R"(graph (%x: f32[n,5]) { %y = slice(%x) {starts = [1], ends = [-1], axes = [0]} return %y })"},
    {"Reduce", R"(graph (%x: f32[n,5]) { %y = reduce_sum(%x) {axes = [1]} %z = relu(%y) return %z })"},
    {"Softmax", R"(graph (%x: f32[n,m]) { %y = softmax(%x) {axis = -1} return %y })"},
    {"Linear", R"(graph (%x: f32[n,5]) { %w = const rand<1> : f32[5,7] %m = matmul(%x, %w) %y = relu(%m) return %y })"},
    {"InnerOfNothing", R"(graph (%x: f32[3,n], %z: f32[n,7]) { %m = matmul(%x, %z) %y = relu(%m) return %y })"},
    {"Conv", R"(graph (%x: f32[n,3,6,6]) { %w = const rand<1> : f32[8,3,3,3] %c = conv(%x, %w) {pads = [1,1,1,1]}
       %y = relu(%c) return %y })"},
    {"Transpose", R"(graph (%x: f32[n,3,m]) { %y = transpose(%x) {perm = [2,1,0]} return %y })"},
};

class EmptyExtents : public testing::TestWithParam<Case> {};

TEST_P(EmptyExtents, RunLikeAllOthers) {
  const Graph graph = parse_graph(GetParam().text, ops());
  const Executable executable = open_executable(graph);
  for (const SymbolValues& sizes : all_sizes(graph, {})) {
    const std::vector<Tensor> inputs = random_inputs(graph, {.seed = 3, .symbols = sizes});
    for (const OutputComparison& output : compare_outputs(*fixed(graph, sizes), executable, inputs, inputs, {}))
      EXPECT_TRUE(output.ok) << text_of(sizes) << ": " << output.difference.relative();
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, EmptyExtents, testing::ValuesIn(kAlways), name_of);

TEST(OpenIndices, ConstantOnesNeedAnAxisThatHoldsThem) {
  const Graph graph = parse_graph(R"(graph (%x: f32[n,3]) { %i = const dense<1,-3> : i64[2]
    %y = gather(%x, %i) {axis = 0} return %y })",
                                  ops());
  const Executable executable = open_executable(graph);
  const auto inputs = [&](int64_t n) { return random_inputs(graph, {.seed = 3, .symbols = {{"n", n}}}); };
  EXPECT_TRUE(compare_outputs(*fixed(graph, {{"n", 3}}), executable, inputs(3), inputs(3), {})[0].ok);
  EXPECT_THROW(run_executable(executable, inputs(2)), Error);
}

/// The last t of n + t elements, and all but the last t.
TEST(OpenSlices, CountFromTheEndWhereTheyAreNegative) {
  const Graph graph = parse_graph(R"(graph (%x: f32[n,2], %z: f32[t,2]) {
    %k = concat(%x, %z) {axis = 0} %h = relu(%k) %s = shape(%z) %o = const dense<0> : i64[1] %f = const dense<9223372036854775807> : i64[1]
    %l = gather(%s, %o) {axis = 0} %m = neg(%l) %a = slice(%h, %m, %f, %o) %b = slice(%h, %o, %m, %o)
    %p = exp(%a) %q = add(%p, %z) %r = neg(%b) %u = add(%r, %x) return %q, %u })",
                                  ops());
  const Executable executable = open_executable(graph);
  for (const SymbolValues& sizes : {SymbolValues{{"n", 5}, {"t", 3}}, {{"n", 1}, {"t", 1}}, {{"n", 2}, {"t", 7}}}) {
    const std::vector<Tensor> inputs = random_inputs(graph, {.seed = 3, .symbols = sizes});
    for (const OutputComparison& output : compare_outputs(*fixed(graph, sizes), executable, inputs, inputs, {}))
      EXPECT_TRUE(output.ok) << text_of(sizes) << ": " << output.difference.relative();
  }
  const std::vector<Tensor> none = random_inputs(graph, {.seed = 3, .symbols = {{"n", 5}, {"t", 0}}});
  EXPECT_THROW(run_executable(executable, none), Error);  // -0 counts from the start
}

/// To a multiple of 4, and to 4 rows whatever there are: computed amounts that add or cut.
TEST(OpenPads, AreComputedFromShapes) {
  const Graph graph = parse_graph(R"(graph (%x: f32[n,3]) {
    %h = relu(%x) %s = shape(%h) %z = const dense<0> : i64[1] %f = const dense<4> : i64[1] %n = gather(%s, %z) {axis = 0}
    %d = sub(%f, %n) %p = concat(%d, %z, %z, %z) {axis = 0} %r = mod(%n, %f) %q = sub(%f, %r) %e = mod(%q, %f) %w = concat(%z, %z, %e, %z) {axis = 0}
    %a = pad(%h, %p) {value = 2.5} %b = exp(%a) %c = pad(%h, %w) {mode = "edge"} %u = exp(%c) return %b, %u })",
                                  ops());
  const Executable executable = open_executable(graph);
  for (const int64_t n : {1, 3, 4, 5, 8, 9}) {
    const std::vector<Tensor> inputs = random_inputs(graph, {.seed = 3, .symbols = {{"n", n}}});
    for (const OutputComparison& output : compare_outputs(*fixed(graph, {{"n", n}}), executable, inputs, inputs, {}))
      EXPECT_TRUE(output.ok) << n << ": " << output.difference.relative();
  }
}

Graph adding() {
  return parse_graph(R"(graph (%x: f32[n,4], %z: f32[m,4]) {
    %c = const rand<1> : f32[4,4]
    %p = matmul(%x, %c)  @"product"(MatMul@17)
    %a = add(%p, %z)  @"sum"(Add@17)
    %y = relu(%a) return %y })",
                     ops());
}

TEST(OpenBroadcast, KernelsThatNeedNoStretchingAreShared) {
  const Executable executable = open_executable(adding());
  EXPECT_TRUE(executable.variants().empty());
  ASSERT_EQ(executable.artifact().variants.size(), 1u);
  EXPECT_TRUE(executable.artifact().variants[0].stretches);
  EXPECT_EQ(&executable.artifact().program_for({{"n", 3}, {"m", 3}}), &executable.artifact());
  EXPECT_EQ(&executable.artifact().program_for({{"n", 1}, {"m", 3}}), &executable.artifact().variants[0]);
}

TEST(OpenBroadcast, GraphsWithNamedDimensionsHaveOneProgram) {
  const Graph graph = parse_graph("graph (%x: f32[n,4], %z: f32[n,4]) { %y = add(%x, %z) return %y }", ops());
  EXPECT_TRUE(open_executable(graph).artifact().variants.empty());
  EXPECT_TRUE(open_executable(graph).artifact().constraints.empty());
}

TEST(OpenBroadcast, AVariantThatSettlesItRuns) {
  const Executable executable = compile(Model::from_graph(adding()), Target::host(),
                                        {.specialize = {{{"n", 1}}, {{"n", 2}}}, .cache = false, .threads = 1});
  const Artifact& artifact = executable.artifact();
  ASSERT_EQ(artifact.variants.size(), 3u);
  EXPECT_EQ(&artifact.program_for({{"n", 1}, {"m", 5}}), &artifact.variants[0]);
  EXPECT_EQ(&artifact.program_for({{"n", 2}, {"m", 2}}), &artifact.variants[1]);
  EXPECT_EQ(&artifact.program_for({{"n", 2}, {"m", 1}}), &artifact.variants[2]);
  for (const SymbolValues& sizes : std::vector<SymbolValues>{{{"n", 1}, {"m", 5}}, {{"n", 2}, {"m", 1}}}) {
    const std::vector<Tensor> inputs = random_inputs(adding(), {.seed = 3, .symbols = sizes});
    for (const OutputComparison& output : compare_outputs(*fixed(adding(), sizes), executable, inputs, inputs, {}))
      EXPECT_TRUE(output.ok) << text_of(sizes);
  }
}

TEST(OpenBroadcast, ALoadedFileChecksToo) {
  char folder[] = "/tmp/opfuse_open_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/m.opf";
  open_executable(adding()).save(path);
  const Executable loaded = Executable::load(path);
  const auto inputs = [&](int64_t n, int64_t m) {
    return random_inputs(adding(), {.seed = 3, .symbols = {{"n", n}, {"m", m}}});
  };
  EXPECT_TRUE(compare_outputs(*fixed(adding(), {{"n", 3}, {"m", 1}}), loaded, inputs(3, 1), inputs(3, 1), {})[0].ok);
  try {
    run_executable(loaded, inputs(3, 2));
    ADD_FAILURE() << "3 and 2 do not broadcast";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().node, "sum");
    EXPECT_EQ(error.diagnostic().op, "Add, opset 17");
    EXPECT_NE(std::string(error.what()).find("m = 2, n = 3"), std::string::npos) << error.what();
  }
  std::filesystem::remove_all(folder);
}

TEST(OpenBroadcast, EmulatedGpuKernelsStretch) {
  const Executable executable = open_executable(adding(), "cuda:emulated");
  for (const SymbolValues& sizes : std::vector<SymbolValues>{{{"n", 1}, {"m", 3}}, {{"n", 3}, {"m", 1}}}) {
    const std::vector<Tensor> inputs = random_inputs(adding(), {.seed = 3, .symbols = sizes});
    for (const OutputComparison& output : compare_outputs(*fixed(adding(), sizes), executable, inputs, inputs, {}))
      EXPECT_TRUE(output.ok) << text_of(sizes);
  }
}

}  // namespace
}  // namespace opfuse
