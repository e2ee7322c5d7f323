// Random graphs: whatever the plan groups, the fused graph is valid, acyclic and equal to the original.
#include <gtest/gtest.h>

#include "fusion/prepared.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "ir/outline.hpp"
#include "region/lower.hpp"

namespace opfuse {
namespace {

// Values of one shape only, so that any of them can meet; convolutions and pools keep it.
Graph random_graph(uint64_t seed) {
  Random rng(seed, "graph");
  Graph g;
  std::vector<Value*> values{g.add_input("x", {DType::f32, {1, 4, 6, 6}}),
                             g.add_input("z", {DType::f32, {1, 4, 6, 6}})};
  Tensor weight(DType::f32, {4, 4, 3, 3}), channel(DType::f32, {1, 4, 1, 1});
  for (int64_t i = 0; i < weight.elements(); ++i) weight.set_real(i, 0.2 * rng.normal());
  for (int64_t i = 0; i < channel.elements(); ++i) channel.set_real(i, rng.normal());
  Value *w = g.add_constant(weight, "w"), *k = g.add_constant(channel, "k");
  auto pick = [&] {
    return values[static_cast<size_t>(rng.between(std::max<int64_t>(0, static_cast<int64_t>(values.size()) - 5),
                                                  static_cast<int64_t>(values.size()) - 1))];
  };
  auto node = [&](const char* op, std::vector<Value*> in, const AttrMap& attrs = {}) {
    const std::string name = "n" + std::to_string(values.size());
    Node* n = g.add_node(op_named(op), attrs, std::move(in), 1, {Source{name, op, "", 17}});
    n->output()->name = "v" + std::to_string(values.size());
    values.push_back(n->output());
  };
  const std::vector<int64_t> ones{1, 1, 1, 1}, three{3, 3};
  for (int i = 0; i < 24; ++i) switch (rng.between(0, 12)) {
      case 0:
      case 1:
        node("conv", {pick(), w}, {{"pads", ones}});
        break;
      case 2:
        node("max_pool", {pick()}, {{"kernel_shape", three}, {"pads", ones}});
        break;
      case 3:
        node("relu", {pick()});
        break;
      case 4:
        node("tanh", {pick()});
        break;
      case 5:
        node("add", {pick(), pick()});
        break;
      case 6:
        node("mul", {pick(), pick()});
        break;
      case 7:
        node("add", {pick(), k});
        break;
      case 8:
        node("softmax", {pick()});
        break;
      case 9:
        node("sigmoid", {pick()});
        break;
      case 10:
        node("transpose", {pick()}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
        break;
      case 11: {
        Value* x = pick();
        const std::vector<int64_t> last{-1};
        Value* mean =
            g.add_node(op_named("reduce_mean"), AttrMap{{"axes", last}, {"keepdims", int64_t{1}}}, {x})->output();
        mean->name = "m" + std::to_string(values.size());
        node("sub", {x, mean});
        break;
      }
      case 12: {
        Value* both = g.add_node(op_named("concat"), AttrMap{{"axis", int64_t{1}}}, {pick(), pick()})->output();
        both->name = "c" + std::to_string(values.size());
        node("slice", {both},
             {{"starts", std::vector<int64_t>{2}},
              {"ends", std::vector<int64_t>{6}},
              {"axes", std::vector<int64_t>{1}}});
        break;
      }
    }
  std::vector<Value*> outputs;
  for (Value* v : values)
    if (v->producer && (v->uses.empty() || rng.between(0, 11) == 0)) outputs.push_back(v);
  g.set_outputs(outputs);
  return g;
}

/// A launch, and its bytes; what lowers to one loop nest is legal.
std::variant<GroupPrice, Decline> price_of(const Node& node) {
  const auto lowered = lower_group(node);
  if (const auto* decline = std::get_if<Decline>(&lowered)) return *decline;
  const Region& region = std::get<LoweredGroup>(lowered).region;
  if (region.stages.size() > 1) return Decline{"not_generated", "several loop nests", {}};
  const RegionCost cost = cost_of(region);
  const double bytes = cost.bytes_read + cost.bytes_written;
  return GroupPrice{1 + 1e-3 * bytes, 1 + 1e-3 * bytes, static_cast<int64_t>(bytes)};
}

class RandomGraphs : public testing::TestWithParam<int> {};

TEST_P(RandomGraphs, KeepTheirValuesWhenFused) {
  const Graph original = random_graph(static_cast<uint64_t>(GetParam()));
  verify(original);
  const Graph graph = prepared(original.clone());
  PlanOptions options;
  options.legal = [](const Node& node) -> std::optional<Decline> {
    const auto price = price_of(node);
    return std::holds_alternative<Decline>(price) ? std::optional(std::get<Decline>(price)) : std::nullopt;
  };
  options.price = price_of;
  const FusionPlan plan = make_plan(graph, options);
  const Graph fused = apply(graph, plan, false, options.legal);
  verify(fused);
  EXPECT_EQ(to_json(plan_from_json(to_json(plan))), to_json(plan));
  for (const EdgeVerdict& e : plan.edges) EXPECT_NE(e.group.empty(), e.decline.code.empty()) << e.tensor;
  const std::vector<Tensor> inputs = random_inputs(original);
  const auto want = interpret(original, inputs), got = interpret(fused, inputs);
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_LE(difference(got[i], want[i]).relative(), 1e-6) << print(graph);
  Graph back = fused.clone();
  expand_bodies(back);
  verify(back);
  EXPECT_LE(difference(interpret(back, inputs)[0], want[0]).relative(), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphs, testing::Range(0, 200));

}  // namespace
}  // namespace opfuse
