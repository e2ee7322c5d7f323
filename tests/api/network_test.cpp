// Networks built call by call: what they become, and what is refused where it is written.
#include "opfuse/network.hpp"

#include <gtest/gtest.h>

#include "ir/graph.hpp"
#include "opfuse/bytes.hpp"

namespace opfuse {
namespace {

/// What a call throws, as "code node".
template <class F>
std::string refusal(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.diagnostic().name + " " + error.diagnostic().node;
  }
  return "none";
}

Network residual_block() {
  Network net("block");
  auto x = net.input("x", {"batch", 8, 6, 6});
  auto y = net.op("relu", {net.batch_norm(net.conv(x, {.out = 8, .kernel = 3}))});
  y = net.batch_norm(net.conv(y, {.out = 8, .kernel = 3}));
  net.output("y", net.op("relu", {net.add(y, x)}));
  return net;
}

TEST(Network, BuildsAResidualBlockThatFusesIntoTwo) {
  const Model model = residual_block().model();
  EXPECT_EQ(model.inputs()[0].shape, (std::vector<std::string>{"batch", "8", "6", "6"}));
  EXPECT_EQ(model.outputs()[0].shape, (std::vector<std::string>{"batch", "8", "6", "6"}));
  const Fused fused = apply(model, plan(model, Target::host()));
  EXPECT_EQ(fused.model.modules(), (std::map<std::string, int>{{"FusedConvBNAddReLU", 1}, {"FusedConvBNReLU", 1}}));
}

TEST(Network, IsTheSameModelThroughBytes) {
  const Model model = residual_block().model();
  const Model again = load_bytes(save_bytes(model));
  std::string why;
  EXPECT_TRUE(equal(model.graph(), again.graph(), &why)) << why;
  EXPECT_EQ(refusal([] { load_bytes("no model"); }), "malformed_model ");
  EXPECT_EQ(refusal([] { load_bytes(""); }), "malformed_model ");
}

TEST(Network, ChecksShapesAtTheCallThatDoesNotFit) {
  Network net;
  auto x = net.input("x", {1, 8, 6, 6}), z = net.input("z", {1, 8, 5, 6});
  EXPECT_EQ(refusal([&] { net.add(x, z, "sum"); }), "shape_mismatch sum");
  const std::vector<float> weights(4 * 5 * 9);
  EXPECT_EQ(refusal([&] { net.conv(x, {.weights = view(weights, {4, 5, 3, 3}), .name = "c"}); }), "channel_mismatch c");
  EXPECT_EQ(refusal([&] { net.conv(x, {}); }), "bad_attribute /Conv");
  EXPECT_EQ(refusal([&] { net.conv(x, {.out = 6, .group = 4}); }), "channel_mismatch /Conv");
  EXPECT_EQ(refusal([&] { net.op("rellu", {x}); }), "unknown_name ");
  EXPECT_EQ(refusal([&] { net.op("softmax", {x}, {{"axxis", int64_t{1}}}); }).substr(0, 13), "bad_attribute");
  EXPECT_EQ(refusal([&] { net.input("x", {1}); }), "duplicate_name ");
  EXPECT_EQ(refusal([&] { net.input("w", {"2x"}); }), "bad_dimension ");
  EXPECT_EQ(refusal([&] { net.model(); }), "bad_option ");
  net.output("y", net.add(x, x, "sum"));  // the network goes on after an error
  EXPECT_EQ(net.model().outputs()[0].name, "y");
}

TEST(Network, RefusesValuesOfAnotherNetwork) {
  Network net, other;
  const NetworkValue x = net.input("x", {1, 3, 8, 8}), stranger = other.input("x", {1, 3, 8, 8});
  EXPECT_EQ(refusal([&] { net.op("relu", {stranger}); }), "bad_option ");
  EXPECT_EQ(refusal([&] { net.add(x, stranger, "sum"); }), "bad_option ");
  EXPECT_EQ(refusal([&] { net.conv(stranger, {.out = 4}); }), "bad_option ");
  EXPECT_EQ(refusal([&] { net.batch_norm(stranger); }), "bad_option ");
  EXPECT_EQ(refusal([&] { net.output("y", stranger); }), "bad_option ");
  net.output("y", net.batch_norm(net.conv(x, {.out = 4})));
  EXPECT_EQ(net.model().outputs()[0].name, "y");
}

TEST(Network, OutputsKeepTheirNamesWhateverTheyAre) {
  Network net;
  auto x = net.input("x", {4});
  auto r = net.op("relu", {x});
  net.output("same", x);
  net.output("a", r);
  net.output("b", r);
  const Model model = net.model();
  ASSERT_EQ(model.outputs().size(), 3u);
  EXPECT_EQ(model.outputs()[0].name, "same");
  EXPECT_EQ(model.outputs()[2].name, "b");
  EXPECT_EQ(model.inputs()[0].name, "x");
  EXPECT_EQ(load_bytes(save_bytes(model)).outputs()[1].name, "a");
}

TEST(Network, HasOperatorsOfSeveralResultsAndAbsentOperands) {
  Network net;
  auto x = net.input("x", {6, 4});
  const auto parts = net.op_results("split", {x}, 2, {{"axis", int64_t{0}}, {"num_outputs", int64_t{2}}});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].info().shape, (std::vector<std::string>{"3", "4"}));
  const float high[] = {6};
  net.output("y", net.op("clip", {parts[0], {}, net.constant(view(high, {}))}));
  EXPECT_EQ(net.model().outputs()[0].shape, (std::vector<std::string>{"3", "4"}));
}

}  // namespace
}  // namespace opfuse
