// Operators whose older forms ask for sizes that a model may leave open, on numbers.
#include <gtest/gtest.h>

#include "interp/interpreter.hpp"
#include "onnx/model_bytes.hpp"
#include "onnx/read.hpp"

namespace opfuse::test {
namespace {

void expect_values(const Graph& graph, const std::vector<Tensor>& inputs, const std::vector<double>& values) {
  const Tensor y = interpret(graph, inputs).at(0);
  ASSERT_EQ(y.elements(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(y.real(static_cast<int64_t>(i)), values[i], 2e-4) << i;
}

Tensor reals(const std::vector<int64_t>& sizes, const std::vector<double>& values) {
  return Tensor::of(DType::f32, sizes, values);
}

TEST(OpenSizes, GroupNormalizationOfOpset18RepeatsScalesOfGroups) {
  for (const char* channels : {"4", "c"}) {
    ModelBytes m{.graph = {.nodes = {node("GroupNormalization", {"x", "s", "b"}, {"y"},
                                          {attribute("num_groups", int64_t{2}), real_attribute("epsilon", 0)})},
                           .inputs = {value_info("x", kFloat, {"1", channels, "1"}), value_info("s", kFloat, {"2"}),
                                      value_info("b", kFloat, {"2"})},
                           .outputs = {value_info("y", kFloat, {"1", channels, "1"})}}};
    m.opset = 18;
    const Graph graph = read_onnx_bytes(m.text());
    expect_values(graph, {reals({1, 4, 1}, {1, 3, 5, 9}), reals({2}, {1, 10}), reals({2}, {0, 1})}, {-1, 1, -9, 11});
  }
}

/// torch.arange(int(h * 1.5)) of floats: its end is a real number that the run computes, here 10.5, or 10 as a whole.
TEST(OpenSizes, ARangeOfRealNumbersEndsWhereTheRunSays) {
  for (const bool whole : {false, true}) {
    ModelBytes m{
        .graph = {
            .nodes = {node("Shape", {"x"}, {"s"}), node("Squeeze", {"s"}, {"h"}),
                      node("Cast", {"h"}, {"f"}, {attribute("to", int64_t{1})}), node("Mul", {"f", "scale"}, {"m"}),
                      node("Cast", {"m"}, {"t"}, {attribute("to", int64_t{7})}),
                      node("Cast", {"t"}, {"e"}, {attribute("to", int64_t{1})}),
                      node("Range", {"zero", whole ? "e" : "m", "one"}, {"r"}), node("Mul", {"r", "scale"}, {"y"})},
            .initializers = {tensor("scale", kFloat, {}, floats({1.5F})), tensor("zero", kFloat, {}, floats({0})),
                             tensor("one", kFloat, {}, floats({1}))},
            .inputs = {value_info("x", kFloat, {"h"})},
            .outputs = {value_info("y", kFloat, {"n"})}}};
    const Graph graph = read_onnx_bytes(m.text());
    for (const Node* n : graph.nodes()) EXPECT_FALSE(n->is("opaque"));
    ASSERT_TRUE(graph.outputs()[0]->type.shape.ranked);
    std::vector<double> want;
    for (int i = 0; i < (whole ? 10 : 11); ++i) want.push_back(1.5 * i);
    expect_values(graph, {Tensor(DType::f32, {7})}, want);
  }
}

TEST(OpenSizes, GroupNormalizationSaysWhichChannelsItDoesNotDivide) {
  ModelBytes m{
      .graph = {.nodes = {node("GroupNormalization", {"x", "s", "s"}, {"y"}, {attribute("num_groups", int64_t{2})})},
                .inputs = {value_info("x", kFloat, {"1", "5", "1"}), value_info("s", kFloat, {"2"})},
                .outputs = {value_info("y", kFloat, {"1", "5", "1"})}}};
  m.opset = 18;
  try {
    read_onnx_bytes(m.text());
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.diagnostic().message.find("does not divide 5 channels"), std::string::npos) << e.what();
  }
}

TEST(OpenSizes, HardmaxBeforeOpset13IsOverAllAxesBehind) {
  for (const char* last : {"2", "w"}) {
    ModelBytes m{.graph = {.nodes = {node("Hardmax", {"x"}, {"y"})},
                           .inputs = {value_info("x", kFloat, {"2", "2", last})},
                           .outputs = {value_info("y", kFloat, {"2", "2", last})}}};
    m.opset = 11;
    const Graph graph = read_onnx_bytes(m.text());
    expect_values(graph, {reals({2, 2, 2}, {1, 4, 3, 2, 7, 7, 1, 0})}, {0, 1, 0, 0, 1, 0, 0, 0});
  }
}

/// As many samples as a cell has pixels: boxes that reach beyond the image, and one without an extent. Values of ONNX
/// Runtime 1.32.
TEST(OpenSizes, RoiAlignTakesTheSamplesThatBoxesAskFor) {
  std::vector<double> pixels;
  for (int i = 0; i < 24; ++i) pixels.push_back(std::pow(i, 1.5));
  const Tensor boxes = reals({4, 4}, {0, 0, 5, 5, 1, .5, 6.5, 3.25, -3, -1, 3, 9, 2, 2, 1, 1});
  const std::pair<const char*, std::vector<double>> forms[] = {
      {"half_pixel", {3.038887, 16.365725, 51.198994, 67.35524, 35.356655, 40.03252, 0, 0}},
      {"output_half_pixel", {8.19581, 24.693972, 65.930214, 83.150711, 61.567547, 30.568838, 17.031826, 25.218201}}};
  const std::pair<const char*, const char*> sizes[] = {{"3", "4"}, {"3", "w"}, {"h", "4"}, {"h", "w"}};
  for (const auto& [form, values] : forms)
    for (const auto& [h, w] : sizes) {
      ModelBytes m{
          .graph = {.nodes = {node("RoiAlign", {"x", "r", "i"}, {"y"},
                                   {attribute("output_height", int64_t{2}), real_attribute("spatial_scale", 0.5),
                                    text_attribute("coordinate_transformation_mode", form)})},
                    .inputs = {value_info("x", kFloat, {"n", "1", h, w}), value_info("r", kFloat, {"b", "4"}),
                               value_info("i", 7, {"b"})},
                    .outputs = {value_info("y", kFloat, {"b", "1", "2", "1"})}}};
      m.opset = 16;
      expect_values(read_onnx_bytes(m.text()), {reals({2, 1, 3, 4}, pixels), boxes, Tensor::from_i64({0, 1, 1, 0})},
                    values);
    }
}

/// Taps of half a pixel to the right, then one pixel down, half of it by the mask: what is moved beyond the image is 0.
TEST(OpenSizes, DeformConvSamplesImagesOfAnySize) {
  const std::pair<const char*, const char*> sizes[] = {{"2", "3"}, {"2", "w"}, {"h", "3"}, {"h", "w"}};
  for (const auto& [h, w] : sizes) {
    ModelBytes m{
        .graph = {.nodes = {node("DeformConv", {"x", "f", "o", "", "m"}, {"y"})},
                  .inputs = {value_info("x", kFloat, {"n", "1", h, w}), value_info("f", kFloat, {"1", "1", "1", "1"}),
                             value_info("o", kFloat, {"n", "2", h, w}), value_info("m", kFloat, {"n", "1", h, w})},
                  .outputs = {value_info("y", kFloat, {"n", "1", h, w})}}};
    m.opset = 19;
    const Graph graph = read_onnx_bytes(m.text());
    const Tensor x = reals({1, 1, 2, 3}, {1, 2, 4, 8, 16, 32}), filter = reals({1, 1, 1, 1}, {2});
    const Tensor all = reals({1, 1, 2, 3}, {1, 1, 1, 1, 1, 1}), half = reals({1, 1, 2, 3}, {.5, .5, .5, .5, .5, .5});
    expect_values(graph, {x, filter, reals({1, 2, 2, 3}, {0, 0, 0, 0, 0, 0, .5, .5, .5, .5, .5, .5}), all},
                  {3, 6, 4, 24, 48, 32});
    expect_values(graph, {x, filter, reals({1, 2, 2, 3}, {1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0}), half},
                  {8, 16, 32, 0, 0, 0});
  }
}

}  // namespace
}  // namespace opfuse::test
