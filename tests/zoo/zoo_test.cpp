// The built-in models: their size, names and types; that inputs make a difference; that hardly any channel is dead.
#include "zoo/zoo.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "onnx/read.hpp"
#include "onnx/write.hpp"
#include "opfuse/error.hpp"

namespace opfuse::test {
namespace {

ZooOptions small() { return {.resolution = 64, .classes = 100, .width = 0.25}; }

std::map<std::string, int> counts(const Graph& g) {
  std::map<std::string, int> n;
  for (const Node* node : g.nodes()) ++n[node->op->name];
  return n;
}

int64_t weights(const Graph& g) {
  int64_t n = 0;
  for (const Value* constant : g.constants())
    if (constant->name.ends_with(".weight") || constant->name.ends_with(".bias")) n += constant->constant->elements();
  return n;
}

struct Expected {
  const char* model;
  int convs, norms;
  size_t nodes;
  double million_weights;  ///< as torchvision's documentation gives them
};

class ZooCounts : public testing::TestWithParam<Expected> {};

TEST_P(ZooCounts, AgreeWithTorchvision) {
  const Expected& e = GetParam();
  const Graph g = build_zoo(e.model);
  verify(g);
  auto n = counts(g);
  EXPECT_EQ(n["conv"], e.convs);
  EXPECT_EQ(n["batch_norm"], e.norms);
  EXPECT_EQ(g.nodes().size(), e.nodes);
  EXPECT_NEAR(static_cast<double>(weights(g)) / 1e6, e.million_weights, 0.05);
  EXPECT_EQ(g.inputs()[0]->name, "input");
  EXPECT_EQ(g.inputs()[0]->type.text(), "f32[1,3,224,224]");
  EXPECT_EQ(g.outputs()[0]->name, "output");
  EXPECT_EQ(g.outputs()[0]->type.text(), "f32[1,1000]");
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, ZooCounts,
    testing::Values(Expected{"resnet18", 20, 20, 69, 11.69}, Expected{"resnet34", 36, 36, 125, 21.80},
                    Expected{"resnet50", 53, 53, 175, 25.56}, Expected{"resnet101", 104, 104, 345, 44.55},
                    Expected{"resnet152", 155, 155, 515, 60.19}, Expected{"mobilenet_v2", 52, 52, 152, 3.50},
                    Expected{"mobilenet_v3_large", 62, 46, 186, 5.48}, Expected{"efficientnet_b0", 81, 49, 288, 5.29}),
    [](const testing::TestParamInfo<Expected>& info) { return std::string(info.param.model); });

TEST(Zoo, NamesAreThoseOfPyTorchsExporter) {
  const Graph resnet = build_zoo("resnet50", small());
  EXPECT_NE(resnet.find_node("/conv1/Conv"), nullptr);
  EXPECT_NE(resnet.find_node("/layer1/layer1.0/conv1/Conv"), nullptr);
  EXPECT_NE(resnet.find_node("/layer1/layer1.0/relu_2/Relu"), nullptr);
  EXPECT_NE(resnet.find_node("/layer1/layer1.0/downsample/downsample.1/BatchNormalization"), nullptr);
  EXPECT_NE(resnet.find_value("layer4.2.bn3.running_var"), nullptr);
  EXPECT_NE(resnet.find_value("/Flatten_output_0"), nullptr);
  EXPECT_NE(resnet.find_value("fc.weight"), nullptr);
  const Graph mobile = build_zoo("mobilenet_v2", small());
  EXPECT_NE(mobile.find_node("/features/features.2/conv/conv.0/conv.0.0/Conv"), nullptr);
  EXPECT_NE(mobile.find_node("/features/features.2/conv/conv.0/conv.0.2/Clip"), nullptr);
  EXPECT_NE(mobile.find_value("classifier.1.bias"), nullptr);
}

TEST(Zoo, NamesAndNodesAreThoseOfTheRealExport) {
  const char* models = std::getenv("OPFUSE_TEST_MODELS");
  if (!models) GTEST_SKIP() << "OPFUSE_TEST_MODELS is not set";
  const Graph real = read_onnx(std::string(models) + "/resnet50_bn.onnx"), ours = build_zoo("resnet50");
  ASSERT_EQ(real.nodes().size(), ours.nodes().size());
  for (size_t i = 0; i < real.nodes().size(); ++i) {
    EXPECT_EQ(real.nodes()[i]->sources, ours.nodes()[i]->sources);
    EXPECT_EQ(real.nodes()[i]->output()->name, ours.nodes()[i]->output()->name);
    EXPECT_EQ(real.nodes()[i]->output()->type, ours.nodes()[i]->output()->type);
  }
}

TEST(Zoo, ConvNeXtIsTheRealExport) {
  const char* models = std::getenv("OPFUSE_TEST_MODELS");
  if (!models) GTEST_SKIP() << "OPFUSE_TEST_MODELS is not set";
  const Graph real = read_onnx(std::string(models) + "/convnext_tiny.onnx"), ours = build_zoo("convnext_tiny");
  std::vector<const Node*> theirs;  // without the Identities of shared parameters
  for (const Node* node : real.nodes())
    if (!node->is("identity")) theirs.push_back(node);
  ASSERT_EQ(theirs.size(), ours.nodes().size());
  for (size_t i = 0; i < theirs.size(); ++i) {
    EXPECT_EQ(theirs[i]->sources, ours.nodes()[i]->sources);
    EXPECT_EQ(theirs[i]->output()->name, ours.nodes()[i]->output()->name);
    EXPECT_EQ(theirs[i]->output()->type, ours.nodes()[i]->output()->type);
  }
}

TEST(Zoo, TransformersHaveTheWeightsOfTheirPapers) {
  for (const auto& [name, millions] : {std::pair{"convnext_tiny", 28.58},
                                       {"convnext_small", 50.2},
                                       {"vit_b_16", 86.42},
                                       {"alexnet", 61.10},
                                       {"swin_t", 28.27},
                                       {"bert_base", 109.48}}) {
    const Graph g = build_zoo(name);
    verify(g);
    EXPECT_NEAR(static_cast<double>(weights(g)) / 1e6, millions, 0.05) << name;
  }
}

TEST(Zoo, Opset13HasTheSameValuesAsOpset17) {
  for (const char* name : {"convnext_tiny", "vit_b_16", "swin_t", "bert_base"}) {
    ZooOptions options{.resolution = 32, .classes = 10, .width = 0.125};
    const Graph newer = build_zoo(name, options);
    options.opset = 13;
    const Graph older = build_zoo(name, options);
    EXPECT_EQ(counts(older)["layer_norm"], 0);
    EXPECT_EQ(counts(older)["sqrt"], counts(newer)["layer_norm"]);
    const std::vector<Tensor> inputs = random_inputs(newer);
    EXPECT_LE(difference(interpret(older, inputs)[0], interpret(newer, inputs)[0]).relative(), 1e-9) << name;
  }
  EXPECT_THROW(build_zoo("vit_b_16", {.opset = 14}), Error);
}

TEST(Zoo, BatchMayBeASymbol) {
  ZooOptions options = small();
  options.batch = Dim::symbol("n");
  for (const ZooModel& model : zoo_models())
    EXPECT_EQ(build_zoo(model.name, options).outputs()[0]->type.shape[0].text(), "n") << model.name;
}

TEST(Zoo, TheSameSeedGivesTheSameWeightsAndAnotherDoesNot) {
  ZooOptions other = small();
  other.seed = 1;
  const Graph a = build_zoo("resnet18", small()), b = build_zoo("resnet18", small()), c = build_zoo("resnet18", other);
  EXPECT_TRUE(equal(a, b));
  EXPECT_FALSE(a.find_value("fc.weight")->constant->same_bits(*c.find_value("fc.weight")->constant));
}

TEST(Zoo, FiltersAreCentred) {
  const Graph g = build_zoo("resnet18", small());
  const Tensor& w = *g.find_value("layer2.0.conv1.weight")->constant;
  const auto values = w.view<float>();
  const size_t fan_in = values.size() / static_cast<size_t>(w.dim(0));
  double sum = 0, squares = 0;
  for (size_t i = 0; i < fan_in; ++i) sum += values[i], squares += values[i] * values[i];
  EXPECT_NEAR(sum, 0, 1e-4);
  EXPECT_NEAR(squares, 2.0, 0.6);  // variance 2 / fan-in
}

TEST(Zoo, WritesOnnxThatReadsBackEqual) {
  for (const ZooModel& model : zoo_models()) {
    const Graph g = build_zoo(model.name, small());
    const Graph back = read_onnx_bytes(write_onnx_bytes(g));
    std::string why;
    EXPECT_TRUE(equal(g, back, &why)) << model.name << ": " << why;
  }
}

TEST(Zoo, RefusesNamesAndSizesThatDoNotExist) {
  EXPECT_THROW(build_zoo("resnet51"), Error);
  EXPECT_THROW(build_zoo(""), Error);
  EXPECT_THROW(build_zoo("vgg16", {.resolution = 100}), Error);
  EXPECT_THROW(build_zoo("resnet18", {.width = -1}), Error);
}

class ZooValues : public testing::TestWithParam<const char*> {};

struct Observed {
  Tensor output;
  std::map<std::string, std::vector<double>> channel_max;  ///< of activations of more than one pixel
  double largest = 0;
};

Observed run(const Graph& g, uint64_t seed) {
  Observed r;
  InterpretOptions options;
  options.observe = [&](const Value* value, const Tensor& t) {
    for (int64_t i = 0; i < t.elements(); ++i) r.largest = std::max(r.largest, std::abs(t.real(i)));
    const bool activation = value->producer->is("relu") || value->producer->is("clip");
    if (!activation || t.rank() != 4 || t.dim(2) * t.dim(3) == 1) return;
    std::vector<double>& most = r.channel_max[value->name];
    most.assign(static_cast<size_t>(t.dim(1)), 0);
    const int64_t plane = t.dim(2) * t.dim(3);
    for (int64_t i = 0; i < t.elements(); ++i) {
      double& channel = most[static_cast<size_t>(i / plane % t.dim(1))];
      channel = std::max(channel, t.real(i));
    }
  };
  r.output = interpret(g, random_inputs(g, {.seed = seed}), options)[0];
  return r;
}

TEST_P(ZooValues, TwoInputsDifferAndHardlyAnyChannelIsDead) {
  const Graph g = build_zoo(GetParam(), small());
  const Observed a = run(g, 1), b = run(g, 2);
  EXPECT_GE(difference(a.output, b.output).relative(), 0.1);
  EXPECT_LT(std::max(a.largest, b.largest), 1000);
  EXPECT_GT(difference(a.output, Tensor(DType::f32, a.output.sizes())).max_abs, 0.05);
  size_t dead = 0, all = 0;
  for (const auto& [name, most] : a.channel_max)
    for (size_t c = 0; c < most.size(); ++c) {
      dead += std::max(most[c], b.channel_max.at(name)[c]) <= 0 ? 1 : 0;
      ++all;
    }
  EXPECT_LE(static_cast<double>(dead), 0.01 * static_cast<double>(all)) << dead << " of " << all << " channels";
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooValues,
                         testing::Values("resnet18", "resnet50", "resnet152", "mobilenet_v2", "mobilenet_v3_large",
                                         "efficientnet_b0", "vgg16", "unet", "convnext_tiny", "vit_b_16", "swin_t"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace opfuse::test
