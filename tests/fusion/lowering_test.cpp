// Plans with the real legality: a group is legal exactly when lowering it succeeds. The region of every group gives
// what the interpreter gives for its nodes.
#include <gtest/gtest.h>

#include "fusion/prepared.hpp"
#include "fusion/random_graph.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "region/lower.hpp"

namespace opfuse {
namespace {

std::optional<Decline> legal(const Node& node) {
  auto lowered = lower_group(node);
  if (auto* decline = std::get_if<Decline>(&lowered)) return *decline;
  return std::nullopt;
}

PlanOptions with_legality() {
  PlanOptions options;
  options.legal = legal;
  return options;
}

// Runs each fused node's region on the interpreter's tensors.
void expect_regions_equal(const Graph& fused) {
  std::map<const Value*, Tensor> seen;
  for (const Value* c : fused.constants()) seen[c] = *c->constant;
  const std::vector<Tensor> inputs = random_inputs(fused);
  for (size_t i = 0; i < inputs.size(); ++i) seen[fused.inputs()[i]] = inputs[i];
  InterpretOptions options;
  options.observe = [&](const Value* v, const Tensor& t) { seen[v] = t; };
  interpret(fused, inputs, options);
  for (const Node* node : fused.nodes()) {
    if (node->op != fused_op()) continue;
    const auto lowered = lower_group(*node);
    ASSERT_TRUE(std::holds_alternative<LoweredGroup>(lowered)) << node->label;
    const LoweredGroup& group = std::get<LoweredGroup>(lowered);
    std::vector<Tensor> params;
    for (size_t i = 0; i < group.operands.size(); ++i) {
      const LoweredOperand& o = group.operands[i];
      if (group.region.params[i].role == ParamRole::output) {
        params.emplace_back();
      } else {
        const Tensor bytes = o.value && seen.contains(o.value) ? seen.at(o.value) : o.bytes();
        params.push_back(is_float(bytes.dtype()) ? bytes.cast(DType::f64) : bytes);
      }
    }
    const std::vector<Tensor> got = interpret(group.region, params, {}, Precision::exact);
    ASSERT_EQ(got.size(), node->outputs.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_LE(difference(got[i], seen.at(node->outputs[i])).relative(), 1e-6) << node->label << "\n"
                                                                                << print(group.region);
  }
}

class LoweredZoo : public testing::TestWithParam<const char*> {};

TEST_P(LoweredZoo, HasTheSamePlanWithTheRealLegality) {
  ZooOptions small;
  small.width = 0.125;
  const Graph graph = prepared(build_zoo(GetParam(), small));
  const FusionPlan plan = make_plan(graph, with_legality());
  EXPECT_EQ(plan.module_counts(), make_plan(graph).module_counts());
  EXPECT_TRUE(plan.missed().empty());
}

INSTANTIATE_TEST_SUITE_P(Models, LoweredZoo,
                         testing::Values("resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_large",
                                         "efficientnet_b0", "vgg16", "unet"),
                         [](const auto& info) { return std::string(info.param); });

TEST(LoweredZoo, RegionsOfASmallMobileNetGiveTheInterpretersValues) {
  ZooOptions small;
  small.width = 0.125;
  small.resolution = 32;
  const Graph graph = prepared(build_zoo("mobilenet_v3_large", small));
  expect_regions_equal(apply(graph, make_plan(graph, with_legality())));
}

class LoweredRandom : public testing::TestWithParam<int> {};

TEST_P(LoweredRandom, RegionsGiveTheInterpretersValues) {
  const Graph graph = prepared(random_graph(static_cast<uint64_t>(GetParam())));
  expect_regions_equal(apply(graph, make_plan(graph, with_legality())));
}

INSTANTIATE_TEST_SUITE_P(Seeds, LoweredRandom, testing::Range(0, 60));

}  // namespace
}  // namespace opfuse
