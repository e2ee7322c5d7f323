// The choice among direct convolution and Winograd: by cost, within bounds, by request, and never where it is not exact
// enough.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/fail.hpp"
#include "cpu/winograd/winograd_error.hpp"
#include "driver/compilation.hpp"
#include "driver/pipeline.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"
#include "zoo/zoo.hpp"

namespace opfuse {
namespace {

Graph prepared(const std::string& model, const ZooOptions& options = {}) {
  Graph graph = build_zoo(model, options);
  prepare(graph, {}, nullptr);
  return apply(graph, plan_graph(graph, parse_target("cpu:avx512"), {}));
}

Program lower(const Graph& graph, AlgorithmRequest request = {}) {
  request.threads = request.threads ? request.threads : 2;
  return lower_to_program(graph, parse_target("cpu:avx512"), {false, std::move(request)});
}

int64_t count(const Program& program, const std::string& name) {
  return std::count_if(program.algorithms.begin(), program.algorithms.end(),
                       [&](const Algorithm& a) { return a.name == name; });
}

int64_t growth(const Program& program) {
  int64_t bytes = 0;
  for (const Algorithm& a : program.algorithms) bytes += a.weight_growth;
  return bytes;
}

const Algorithm& at(const Program& program, const std::string& node) {
  for (const Algorithm& a : program.algorithms) {
    const auto& sources = program.launches[static_cast<size_t>(a.launch)].sources;
    if (std::find(sources.begin(), sources.end(), node) != sources.end()) return a;
  }
  throw std::runtime_error("no convolution " + node);
}

bool mentions(const std::vector<std::string>& notes, const std::string& text) {
  return std::any_of(notes.begin(), notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

class Resnet50 : public testing::Test {
 protected:
  static void SetUpTestSuite() { graph_ = new Graph(prepared("resnet50")); }
  static void TearDownTestSuite() { delete graph_; }
  static Graph* graph_;
};
Graph* Resnet50::graph_ = nullptr;

TEST_F(Resnet50, UsesWinogradWithinFortyFiveMegabytes) {
  const Program program = lower(*graph_);
  EXPECT_GE(program.algorithms.size(), 52U);
  EXPECT_GE(program.algorithms.size() - static_cast<size_t>(count(program, "direct")), 11U);
  EXPECT_LE(growth(program), 45'000'000);
  EXPECT_EQ(at(program, "/layer1/layer1.1/conv2/Conv").name, "f4");
  EXPECT_TRUE(mentions(program.notes, "F(4x4) in 6"));
  EXPECT_TRUE(mentions(program.notes, "--exact: +"));
  for (const Algorithm& a : program.algorithms) EXPECT_LE(a.error, 2e-5);
}

TEST_F(Resnet50, TakesDirectOrF2OnTheSmallestMaps) {
  AlgorithmRequest request;
  request.max_weight_growth = int64_t{1} << 40;
  request.threads = 2;
  const std::string name = at(lower(*graph_, request), "/layer4/layer4.1/conv2/Conv").name;
  EXPECT_TRUE(name == "direct" || name == "f2") << name;
  request.max_weight_growth.reset();
  const std::string bounded = at(lower(*graph_, request), "/layer4/layer4.1/conv2/Conv").name;
  EXPECT_TRUE(bounded == "direct" || bounded == "f2") << bounded;
}

TEST_F(Resnet50, ExactMeansDirect) {
  AlgorithmRequest request;
  request.exact = true;
  const Program program = lower(*graph_, request);
  EXPECT_EQ(count(program, "direct"), static_cast<int64_t>(program.algorithms.size()));
  EXPECT_FALSE(mentions(program.notes, "Winograd"));
}

TEST_F(Resnet50, NamesTheLayersThatABoundChanged) {
  AlgorithmRequest request;
  request.max_weight_growth = 10'000'000;
  const Program program = lower(*graph_, request);
  EXPECT_LE(growth(program), 10'000'000);
  EXPECT_GT(growth(program), 5'000'000);
  const bool named = std::any_of(program.algorithms.begin(), program.algorithms.end(), [](const Algorithm& a) {
    return a.bounded && a.reason.find("--max-weight-growth 10000000") != std::string::npos;
  });
  EXPECT_TRUE(named);
  request = {};
  request.workspace = 1000;
  const Program small = lower(*graph_, request);
  EXPECT_EQ(count(small, "direct"), static_cast<int64_t>(small.algorithms.size()));
  EXPECT_TRUE(at(small, "/layer1/layer1.1/conv2/Conv").bounded);
}

TEST_F(Resnet50, FollowsRequestsPerNodeAndGlobally) {
  const std::string node = "/layer2/layer2.1/conv2/Conv";
  EXPECT_EQ(at(lower(*graph_, {.only = {"f2@" + node}}), node).name, "f2");
  EXPECT_EQ(at(lower(*graph_, {.only = {"direct@" + node}}), node).name, "direct");
  EXPECT_NE(at(lower(*graph_, {.skip = {"f4@" + node}}), node).name, "f4");
  EXPECT_EQ(count(lower(*graph_, {.skip = {"f4"}}), "f4"), 0);
  EXPECT_EQ(count(lower(*graph_, {.only = {"f2"}}), "f4"), 0);
  EXPECT_THROW(lower(*graph_, {.only = {"f6"}}), Error);
  EXPECT_THROW(lower(*graph_, {.only = {"f2@/nowhere"}}), Error);
  EXPECT_THROW(lower(*graph_, {.only = {"f4@/layer1/layer1.0/conv1/Conv"}}), Error) << "a 1x1 convolution";
}

TEST_F(Resnet50, RefusesRequestsThatContradictEachOther) {
  const std::string node = "/layer2/layer2.1/conv2/Conv";
  EXPECT_THROW(lower(*graph_, {.exact = true, .only = {"f4"}}), Error);
  EXPECT_THROW(lower(*graph_, {.only = {"f4@" + node}, .workspace = 1000}), Error);
  EXPECT_THROW(lower(*graph_, {.only = {"f4@" + node}, .skip = {"f4"}}), Error);
  const Program both = lower(*graph_, {.only = {"f4"}, .skip = {"f4@" + node}});
  EXPECT_NE(at(both, node).name, "f4");
  EXPECT_GE(count(both, "f4"), 5);
}

TEST_F(Resnet50, LeavesForbiddenDirectConvolutionWhereItCan) {
  const std::string pointwise = "/layer1/layer1.0/conv1/Conv";
  const Program program = lower(*graph_, {.skip = {"direct"}, .max_weight_growth = int64_t{1} << 40});
  EXPECT_NE(at(program, "/layer4/layer4.1/conv2/Conv").name, "direct");
  EXPECT_EQ(at(program, pointwise).name, "direct");
  EXPECT_TRUE(mentions(program.notes, "convolutions allow nothing else"));
  for (const Algorithm& a : program.algorithms) EXPECT_FALSE(a.bounded) << a.reason;
  EXPECT_TRUE(mentions(lower(*graph_, {.skip = {"direct@" + pointwise}}).notes, "nothing else may be used"));
}

TEST(Algorithms, MeasuringRefusesWhatHasNoKernel) {
  Graph graph = parse_graph(R"(graph (%x: f32[1,32,16,16]) {
 %w = const rand<1> : f32[32,32,3,3]
 %a = conv(%x, %w) {pads = [1,1,1,1], kernel_shape = [3,3]}
 %b = conv(%a, %w) {pads = [1,1,1,1], kernel_shape = [3,3]}
 %i = hardmax(%b) {axis = 1, flatten = true}
 return %b, %i
}
)",
                            ops());
  prepare(graph, {}, nullptr);
  AlgorithmRequest request{.threads = 1, .measure = true};
  EXPECT_THROW(lower_to_program(graph, host_target(), {true, request}), Error);
  request.exact = true;  // nothing to choose, nothing to measure
  EXPECT_NO_THROW(lower_to_program(graph, host_target(), {true, request}));
}

TEST(Algorithms, AProductOfMatricesIsNoConvolution) {
  Graph graph = parse_graph(R"(graph (%x: f32[2,49,64]) {
 %w = const rand<1> : f32[64,96]
 %y = matmul(%x, %w)
 return %y
}
)",
                            ops());
  prepare(graph, {}, nullptr);
  EXPECT_TRUE(lower(graph).algorithms.empty());
}

/// Three in a row: the middle one reads and writes blocks of channels.
Graph convolutions(const std::string& weights, const std::string& shape, int group) {
  std::string text = "graph (%x0: f32[1,64,28,28]) {\n %w = const " + weights + " : f32" + shape + "\n";
  for (int i = 0; i < 3; ++i)
    text += " %x" + std::to_string(i + 1) + " = conv(%x" + std::to_string(i) +
            ", %w) {pads = [1,1,1,1], kernel_shape = [3,3], group = " + std::to_string(group) + "}\n";
  Graph graph = parse_graph(text + " return %x3\n}\n", ops());
  prepare(graph, {}, nullptr);
  return graph;
}

TEST(Algorithms, GroupsNarrowerThanAVectorStayDirectAndSayWhy) {
  const Program narrow = lower(convolutions("rand<1>", "[64,8,3,3]", 8));
  ASSERT_EQ(narrow.algorithms.size(), 3U);
  EXPECT_EQ(narrow.algorithms[1].name, "direct");
  EXPECT_NE(narrow.algorithms[1].reason.find("groups"), std::string::npos) << narrow.algorithms[1].reason;
  const Program wide = lower(convolutions("rand<1>", "[64,32,3,3]", 2));
  ASSERT_EQ(wide.algorithms.size(), 3U);
  EXPECT_NE(wide.algorithms[1].name, "direct") << wide.algorithms[1].reason;
}

/// Convolutions with a BatchNorm behind each, which folds into their weights; those are integers, or floats.
Graph quantised_convolutions(bool quantised, bool norm) {
  std::string text = std::string("graph (%x0: f32[1,64,28,28]) {\n %g = const splat<0.5> : f32[64]\n ") +
                     (quantised ? "%c = const rand<1> : i8[64,64,3,3] %s = const splat<0.01> : f32[]\n"
                                  " %w = dequantize_linear(%c, %s)\n"
                                : "%w = const rand<1> : f32[64,64,3,3]\n");
  for (int i = 0; i < 3; ++i)
    text +=
        fmt::format(" %y{1} = conv(%x{0}, %w) {{pads = [1,1,1,1], kernel_shape = [3,3]}}\n %x{1} = {2}\n", i, i + 1,
                    norm ? fmt::format("batch_norm(%y{}, %g, %g, %g, %g)", i + 1) : fmt::format("relu(%y{})", i + 1));
  Graph graph = parse_graph(text + " return %x3\n}\n", ops());
  prepare(graph, {}, nullptr);
  return apply(graph, plan_graph(graph, parse_target("cpu:avx512"), {}));
}

TEST(Algorithms, QuantisedWeightsStayDirectAndSayWhy) {
  for (const bool norm : {false, true}) {
    const Program integers = lower(quantised_convolutions(true, norm));
    ASSERT_EQ(integers.algorithms.size(), 3U);
    EXPECT_EQ(count(integers, "direct"), 3);
    EXPECT_EQ(integers.algorithms[1].reason, "its weights are quantised");
    EXPECT_LT(count(lower(quantised_convolutions(false, norm)), "direct"), 3);
  }
}

/// Codes between two quantised convolutions; `codes`: of the weights.
Compilation convolution_of_codes(const char* target, const AlgorithmRequest& request, const std::string& codes,
                                 int stride = 1) {
  const std::string text = fmt::format(R"(graph (%x: f32[1,256,28,28]) {{
  %s = const splat<0.02> : f32[] %z = const splat<7> : u8[] %c = const {} : i8[256,256,3,3] %sw = const splat<0.01> : f32[]
  %w = dequantize_linear(%c, %sw) %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z)
  %v = conv(%d, %w) {{pads = [1,1,1,1], strides = [{},{}]}} %y = quantize_linear(%v, %s, %z) return %y }})",
                                       codes, stride, stride);
  CompilationOptions options;
  options.artifact.cache = false;
  options.algorithms = request;
  options.algorithms.threads = 1;
  return compile_graph(parse_graph(text, ops()), parse_target(target), options);
}

TEST(Algorithms, SumsOfCodesAreTransformedWhereTheyStayExact) {
  for (const bool exact : {false, true}) {  // their bits are those of the direct convolution
    const Compilation c = convolution_of_codes("cpu:avx2", {.exact = exact}, "rand<1>");
    ASSERT_EQ(c.program.algorithms.size(), 1U);
    EXPECT_EQ(c.program.algorithms[0].name, "f4") << c.program.algorithms[0].reason;
    EXPECT_TRUE(mentions(c.program.notes, "Winograd F(4x4) in 1 of 1 convolutions, sums of codes, exact"));
    EXPECT_FALSE(mentions(c.program.notes, "--exact: +"));
    EXPECT_FALSE(mentions(c.program.notes, "one by one"));
  }
  const Algorithm strided = convolution_of_codes("cpu:avx2", {}, "rand<1>", 2).program.algorithms.at(0);
  EXPECT_EQ(strided.name + ": " + strided.reason, "direct: stride or dilation");
  const Algorithm bytes = convolution_of_codes("cpu:avx512-vnni", {}, "rand<1>").program.algorithms.at(0);
  EXPECT_EQ(bytes.name + ": " + bytes.reason, "direct: the target multiplies four codes at once");
}

TEST(Algorithms, SumsOfCodesThatWouldLeaveI32TakeASmallerTileOrNone) {
  const Compilation c = convolution_of_codes("cpu:avx2", {}, "splat<127>");
  const Algorithm& a = c.program.algorithms.at(0);
  const std::string node = c.program.launches[static_cast<size_t>(a.launch)].name;
  EXPECT_EQ(a.name, "f4x2");
  EXPECT_NE(a.reason.find("beyond i32"), std::string::npos) << a.reason;
  try {
    convolution_of_codes("cpu:avx2", {.only = {"f4@" + node}}, "splat<127>");
    ADD_FAILURE() << "f4 of sums beyond i32";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("beyond i32"), std::string::npos) << e.what();
  }
  EXPECT_EQ(convolution_of_codes("cpu:avx2", {.only = {"f4"}}, "splat<127>").program.algorithms.at(0).name, "f4x2");
}

TEST(Algorithms, ALayerWhoseErrorIsTooLargeStaysDirectAndSaysWhy) {
  const Program program = lower(convolutions("splat<3e38>", "[64,64,3,3]", 1));
  ASSERT_EQ(program.algorithms.size(), 3U);
  EXPECT_EQ(program.algorithms[1].name, "direct");
  EXPECT_TRUE(program.algorithms[1].inexact);
  EXPECT_NE(program.algorithms[1].reason.find("sum|w||x|"), std::string::npos) << program.algorithms[1].reason;
}

/// The caller's array is dense, and Winograd reads blocks of channels: 64 of them are worth a copy, 3 of them are not.
TEST(Algorithms, AnInputIsCopiedIntoBlocksWhereWinogradPaysForIt) {
  const auto first = [](const std::string& channels, AlgorithmRequest request) {
    Graph graph = parse_graph("graph (%x: f32[1," + channels + ",56,56]) {\n %w = const rand<1> : f32[64," + channels +
                                  ",3,3]\n %a = conv(%x, %w) {pads = [1,1,1,1], kernel_shape = [3,3]} @\"a\"(Conv@17)\n"
                                  " %b = conv(%x, %w) {pads = [1,1,1,1], kernel_shape = [3,3]} @\"b\"(Conv@17)\n"
                                  " %y = add(%a, %b)\n return %y\n}\n",
                              ops());
    return lower(graph, std::move(request));
  };
  const Program copied = first("64", {});
  EXPECT_EQ(at(copied, "a").name, "f4");
  EXPECT_EQ(at(copied, "b").name, "f4");
  EXPECT_EQ(copied.launches.size(), 4U) << "the copy once, two convolutions, the sum\n" << print(copied);
  EXPECT_TRUE(mentions(copied.notes, "copied into blocks"));
  EXPECT_EQ(first("64", {.exact = true}).launches.size(), 3U);
  EXPECT_EQ(first("3", {}).launches.size(), 3U);
}

TEST(Algorithms, WeightsThatOverflowHaveNoBoundedError) {
  Tensor w(DType::f32, {16, 16, 3, 3});
  for (int64_t i = 0; i < w.elements(); ++i) w.set_real(i, i == 100 ? INFINITY : 1);
  EXPECT_GT(probe_winograd_error(w, {4, 4}).of_sum, kWinogradErrorBound);
}

TEST(Algorithms, ABatchMakesTheLargestTilesWorthTheirWeightsOnSmallMaps) {
  const Graph graph = prepared("resnet50", {.batch = 8});
  AlgorithmRequest request;
  request.max_weight_growth = int64_t{1} << 40;
  const std::string name = at(lower(graph, request), "/layer4/layer4.1/conv2/Conv").name;
  EXPECT_TRUE(name == "f4" || name == "f4x2") << name;
}

Graph three_convolutions(const std::string& type, bool constant) {
  const std::string w = "%w: " + type + "[32,32,3,3]";
  const std::string text = "graph (%x: " + type + "[1,32,16,16]" + (constant ? "" : ", " + w) + ") {\n" +
                           (constant ? " %w = const rand<1> : " + type + "[32,32,3,3]\n" : "") +
                           " %a = conv(%x, %w) {pads = [1,1,1,1], kernel_shape = [3,3]}\n" +
                           " %b = conv(%a, %w) {pads = [1,1,1,1], kernel_shape = [3,3]}\n" +
                           " %y = conv(%b, %w) {pads = [1,1,1,1], kernel_shape = [3,3]}\n return %y\n}\n";
  return parse_graph(text, ops());
}

TEST(Algorithms, NeverWithoutConstantWeightsOrInHalfPrecision) {
  const auto winograd = [](const char* type, bool constant) {
    Graph graph = three_convolutions(type, constant);
    prepare(graph, {}, nullptr);
    const Program program = lower(graph, {.only = {"f4"}});
    return count(program, "f4");
  };
  EXPECT_GE(winograd("f32", true), 1);  // the first reads, the last may write, the caller's dense array
  EXPECT_EQ(winograd("f32", false), 0);
  EXPECT_EQ(winograd("f16", true), 0);
}

TEST(Algorithms, TheErrorOfALayerIsProbedWithItsWeights) {
  Tensor mild(DType::f32, {32, 64, 3, 3}), harsh(DType::f32, {32, 1, 3, 3});
  for (int64_t i = 0; i < mild.elements(); ++i) mild.set_real(i, std::sin(static_cast<double>(i)));
  // one tap: a result is one number, its error that of all the numbers around
  for (int64_t o = 0; o < 32; ++o) harsh.set_real(o * 9, 1);
  const WinogradError four = probe_winograd_error(mild, {4, 4}), two = probe_winograd_error(mild, {2, 2});
  EXPECT_LT(four.of_max, 1e-5);
  EXPECT_LT(two.of_max, four.of_max);
  EXPECT_GT(two.of_max, 0);
  EXPECT_LT(four.of_sum, kWinogradErrorBound);
  EXPECT_GT(probe_winograd_error(harsh, {4, 4}).of_sum, four.of_sum);
}

TEST(Algorithms, WinogradEqualsTheInterpreterGroupByGroup) {
  for (const char* model : {"resnet18", "unet", "vgg16"}) {
    Graph graph = build_zoo(model, {.resolution = 64, .classes = 10, .width = 0.5});
    prepare(graph, {}, nullptr);
    const TargetInfo target = host_target();
    const Graph fused = apply(graph, plan_graph(graph, target, {}));
    const Program program = lower_to_program(fused, target, {false, {.only = {"f4"}, .threads = 2}});
    EXPECT_GT(count(program, "f4"), 5) << model;
    ArtifactOptions options;
    options.cache = false;
    const Executable executable = Executable::from_artifact(build_artifact(program, target, options));
    for (const GroupComparison& group :
         compare_groups(fused, program, executable, random_inputs(fused, {.seed = 1}), {}))
      EXPECT_TRUE(group.ok) << model << " " << group.name << ": " << group.difference.relative();
  }
}

}  // namespace
}  // namespace opfuse
