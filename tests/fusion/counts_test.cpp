// Fused modules and Q/DQ points of whole models against the counts made by hand from the architectures.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "fusion/prepared.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"

namespace opfuse {
namespace {

using Counts = std::map<std::string, int>;

int total(const Counts& counts) {
  int sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

Counts resnet(int add_relu, int relu, int plain) {
  return {{"FusedConvBNReLUMaxPool", 1},
          {"FusedConvBNAddReLU", add_relu},
          {"FusedConvBNReLU", relu},
          {"FusedConvBN", plain},
          {"FusedAdaptiveAvgPool2d", 1}};
}

struct ResNet {
  const char* name;
  int add_relu, relu, plain, total;
};

class ResNetCounts : public testing::TestWithParam<ResNet> {};

TEST_P(ResNetCounts, AreThoseOfTheArchitecture) {
  const ResNet& r = GetParam();
  ZooOptions small;
  small.width = 0.125;
  const FusionPlan plan = make_plan(prepared(build_zoo(r.name, small)));
  EXPECT_EQ(plan.module_counts(), resnet(r.add_relu, r.relu, r.plain));
  EXPECT_EQ(total(plan.module_counts()), r.total);
  EXPECT_TRUE(plan.missed().empty());
}

INSTANTIATE_TEST_SUITE_P(Zoo, ResNetCounts,
                         testing::Values(ResNet{"resnet18", 8, 8, 4, 22}, ResNet{"resnet34", 16, 16, 4, 38},
                                         ResNet{"resnet50", 16, 32, 5, 55}, ResNet{"resnet101", 33, 66, 5, 106},
                                         ResNet{"resnet152", 50, 100, 5, 157}),
                         [](const auto& info) { return std::string(info.param.name); });

class RealResNet50 : public testing::TestWithParam<const char*> {};

TEST_P(RealResNet50, Has55Modules) {
  OPFUSE_NEED_MODEL(path, GetParam());
  const FusionPlan plan = make_plan(prepared(read_onnx(path)));
  EXPECT_EQ(plan.module_counts(), resnet(16, 32, 5));
  const QdqSummary points = qdq_summary(plan);
  EXPECT_EQ(points.declared, 72u);
  EXPECT_EQ(points.tensors.size(), 55u);
}

TEST_P(RealResNet50, Has70PointsWithoutThePool) {
  OPFUSE_NEED_MODEL(path, GetParam());
  PlanOptions options;
  options.skip = {"AdaptiveAvgPool"};
  const QdqSummary points = qdq_summary(make_plan(prepared(read_onnx(path)), options));
  EXPECT_EQ(points.declared, 70u);
  EXPECT_EQ(points.tensors.size(), 54u);
}

INSTANTIATE_TEST_SUITE_P(Models, RealResNet50, testing::Values("resnet50.onnx", "resnet50_bn.onnx"),
                         [](const auto& info) {
                           return std::string(info.param).substr(0, std::string(info.param).find('.'));
                         });

TEST(Counts, ResNet50OfTheZooHas72PointsOn55Tensors) {
  ZooOptions small;
  small.width = 0.125;
  const QdqSummary points = qdq_summary(make_plan(prepared(build_zoo("resnet50", small))));
  EXPECT_EQ(points.declared, 72u);
  EXPECT_EQ(points.tensors.size(), 55u);
}

TEST(Counts, MobileNetV2FusesItsResidualAddsIntoTheProjections) {
  OPFUSE_NEED_MODEL(path, "mobilenet_v2.onnx");
  const Graph graph = prepared(read_onnx(path));
  const FusionPlan plan = make_plan(graph);
  EXPECT_EQ(plan.module_counts(),
            (Counts{{"FusedConvBNReLU", 35}, {"FusedConvBN", 18}, {"FusedAdaptiveAvgPool2d", 1}}));
  int appended = 0;
  for (const Candidate* c : plan.applied()) appended += static_cast<int>(c->epilogue.size());
  EXPECT_EQ(appended, 10);
  EXPECT_EQ(apply(graph, plan).nodes().size(), 55u);  // and the final Flatten
}

TEST(Counts, VggKeepsItsHeadAndLosesItsIdentityPool) {
  ZooOptions small;
  small.width = 0.125;
  RewriteReport report;
  const Graph graph = prepared(build_zoo("vgg16", small), &report);
  EXPECT_EQ(report.count("RemoveIdentityAdaptiveAvgPool", true), 1u);
  EXPECT_EQ(report.count("FlattenLinearToConv1x1", true), 0u);
  bool refused = false;
  for (const RewriteNote& n : report.notes)
    refused |= n.rule == "FlattenLinearToConv1x1" && n.reason.code == "spatial_extent" &&
               n.reason.message.find("7x7") != std::string::npos;
  EXPECT_TRUE(refused);
  EXPECT_EQ(make_plan(graph).module_counts(),
            (Counts{{"FusedConvBNReLU", 13}, {"FusedLinearReLU", 2}, {"FusedLinear", 1}}));
}

TEST(Counts, AlexNetKeepsItsHeadAndLosesItsIdentityPool) {
  RewriteReport report;
  const Graph graph = prepared(build_zoo("alexnet", {.width = 0.125}), &report);
  EXPECT_EQ(report.count("RemoveIdentityAdaptiveAvgPool", true), 1u);
  EXPECT_EQ(report.count("FlattenLinearToConv1x1", true), 0u);
  EXPECT_EQ(std::count_if(report.notes.begin(), report.notes.end(),
                          [](const RewriteNote& n) {
                            return n.rule == "FlattenLinearToConv1x1" && n.reason.code == "spatial_extent" &&
                                   n.reason.message.find("6x6") != std::string::npos;
                          }),
            1);
  EXPECT_EQ(make_plan(graph).module_counts(),
            (Counts{{"FusedConvBNReLU", 5}, {"FusedLinearReLU", 2}, {"FusedLinear", 1}}));
}

TEST(Counts, ConvNeXtTinyHasTheMlpsOfItsBlocks) {
  OPFUSE_NEED_MODEL(path, "convnext_tiny.onnx");
  const FusionPlan plan = make_plan(prepared(read_onnx(path)));
  EXPECT_EQ(plan.module_counts(), (Counts{{"FusedConvBN", 23},
                                          {"FusedLinearReLU", 18},
                                          {"FusedLinear", 18},
                                          {"FusedLayerNorm", 23},
                                          {"FusedAdaptiveAvgPool2d", 1}}));
  const QdqSummary points = qdq_summary(plan);
  EXPECT_EQ(points.declared, 61u);  // 23 convolutions, 36 Linears, 2 of the pool
  EXPECT_EQ(points.tensors.size(), 61u);
}

TEST(Counts, VitB16Has87ModulesAnd86Points) {
  OPFUSE_NEED_MODEL(path, "vit_b_16.onnx");
  const FusionPlan plan = make_plan(prepared(read_onnx(path)));
  EXPECT_EQ(plan.module_counts(), (Counts{{"FusedConvBN", 1},
                                          {"FusedMHAInProjection", 12},
                                          {"FusedScaledDotProductAttention", 12},
                                          {"FusedLinearReLU", 12},
                                          {"FusedLinear", 25},
                                          {"FusedLayerNorm", 25}}));
  EXPECT_EQ(total(plan.module_counts()), 87);
  const QdqSummary points = qdq_summary(plan);
  EXPECT_EQ(points.declared, 86u);
  EXPECT_EQ(points.tensors.size(), 86u);
}

TEST(Counts, BertBaseHasTheModulesOfItsTwelveLayers) {
  OPFUSE_NEED_MODEL(path, "bert_base.onnx");
  const FusionPlan plan = make_plan(prepared(read_onnx(path)));
  EXPECT_EQ(plan.module_counts(), (Counts{{"FusedMHAInProjection", 12},  // three Linears each
                                          {"FusedScaledDotProductAttention", 12},
                                          {"FusedLinearReLU", 12},
                                          {"FusedLinear", 25},  // out-projections, second Linears, the pooler
                                          {"FusedLayerNorm", 25}}));
  const QdqSummary points = qdq_summary(plan);
  EXPECT_EQ(points.declared, 85u);
  EXPECT_EQ(points.tensors.size(), 85u);
}

/// Models of the zoo, small, in both spellings: opset 13 has no LayerNormalization.
struct ZooCounts {
  const char* name;
  Counts counts;
  size_t points, tensors;
};

void PrintTo(const ZooCounts& c, std::ostream* out) { *out << c.name; }

Counts convnext(int blocks) {
  return {{"FusedConvBN", blocks + 5},
          {"FusedLinearReLU", blocks},
          {"FusedLinear", blocks},
          {"FusedLayerNorm", blocks + 5},
          {"FusedAdaptiveAvgPool2d", 1}};
}

Counts encoder(Counts more) {
  Counts counts{{"FusedMHAInProjection", 12},
                {"FusedScaledDotProductAttention", 12},
                {"FusedLinearReLU", 12},
                {"FusedLinear", 25},
                {"FusedLayerNorm", 25}};
  counts.merge(more);
  return counts;
}

const ZooCounts kZoo[] = {{"convnext_tiny", convnext(18), 61, 61},
                          {"convnext_small", convnext(36), 115, 115},
                          {"convnext_base", convnext(36), 115, 115},
                          {"convnext_large", convnext(36), 115, 115},
                          {"vit_b_16", encoder({{"FusedConvBN", 1}}), 86, 86},
                          {"bert_base", encoder({}), 85, 85},
                          // 12 blocks, the stem, 3 mergers; the head behind a Flatten is a 1x1 convolution
                          {"swin_t",
                           {{"FusedConvBN", 2},
                            {"FusedMHAInProjection", 12},
                            {"FusedScaledDotProductAttention", 12},
                            {"FusedLinearReLU", 12},
                            {"FusedLinear", 27},
                            {"FusedLayerNorm", 29},
                            {"FusedAdaptiveAvgPool2d", 1}},
                           91,
                           90}};  // what the pool gives, the head reads

class ZooTransformers : public testing::TestWithParam<std::tuple<ZooCounts, int64_t>> {};

TEST_P(ZooTransformers, HaveTheModulesOfTheirArchitectureInEverySpelling) {
  const auto& [expected, opset] = GetParam();
  const bool text = std::string(expected.name) == "bert_base";
  const Graph original =
      build_zoo(expected.name, {.resolution = text ? 8 : 64, .classes = 10, .width = 0.125, .opset = opset});
  const bool spelled = std::none_of(original.nodes().begin(), original.nodes().end(),
                                    [](const Node* node) { return node->is("layer_norm"); });
  EXPECT_EQ(spelled, opset < 17);
  const Graph graph = prepared(original.clone());
  const FusionPlan plan = make_plan(graph);
  EXPECT_EQ(plan.module_counts(), expected.counts);
  const QdqSummary points = qdq_summary(plan);
  EXPECT_EQ(points.declared, expected.points);
  EXPECT_EQ(points.tensors.size(), expected.tensors);
  const std::vector<Tensor> inputs = random_inputs(original);
  const Tensor want = interpret(original, inputs).back(), got = interpret(apply(graph, plan), inputs).back();
  EXPECT_LE(difference(got, want).relative(), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooTransformers, testing::Combine(testing::ValuesIn(kZoo), testing::Values(13, 17)),
                         [](const auto& info) {
                           return fmt::format("{}_opset{}", std::get<0>(info.param).name, std::get<1>(info.param));
                         });

TEST(Counts, PlansAreEqualFromRunToRun) {
  ZooOptions small;
  small.width = 0.125;
  const Graph graph = prepared(build_zoo("mobilenet_v2", small));
  EXPECT_EQ(to_json(make_plan(graph)), to_json(make_plan(graph.clone())));
}

}  // namespace
}  // namespace opfuse
