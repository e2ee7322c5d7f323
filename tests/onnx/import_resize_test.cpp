// Resize with filters wider than a kernel reads: by axis, and as sums over windows, with the values of the operator.
#include <gtest/gtest.h>

#include "interp/interpreter.hpp"
#include "onnx/model_bytes.hpp"
#include "onnx/read.hpp"
#include "ops/run_op.hpp"

namespace opfuse::test {
namespace {

constexpr int kOpsetOfAxes = 18;

struct Wide {
  std::string mode = "linear";
  std::vector<int64_t> from, to;
  int64_t exclude_outside = 0;
  int64_t element_type = kFloat;
  std::string policy = "stretch";
  bool open = false;  ///< the last two axes have names in the file
};

Graph read_wide(const Wide& w) {
  Strings in, out;
  for (int64_t size : w.from) in.push_back(std::to_string(size));
  if (w.open) in.end()[-2] = "h", in.end()[-1] = "w";
  for (int64_t size : w.to) out.push_back(std::to_string(size));
  const std::string sizes(reinterpret_cast<const char*>(w.to.data()), 8 * w.to.size());
  ModelBytes m{.graph = {.nodes = {node("Resize", {"x", "", "", "s"}, {"y"},
                                        {text_attribute("mode", w.mode), attribute("antialias", int64_t{1}),
                                         attribute("exclude_outside", w.exclude_outside),
                                         text_attribute("keep_aspect_ratio_policy", w.policy)},
                                        "resize")},
                         .initializers = {tensor("s", 7, {static_cast<int64_t>(w.to.size())}, sizes)},
                         .inputs = {value_info("x", w.element_type, in)},
                         .outputs = {value_info("y", w.element_type, out)}}};
  m.opset = kOpsetOfAxes;
  return read_onnx_bytes(m.text());
}

size_t resizes(const Graph& graph) {
  size_t count = 0;
  for (const Node* node : graph.nodes()) count += node->is("resize");
  return count;
}

double value(const Tensor& t, int64_t i) { return is_float(t.dtype()) ? t.real(i) : static_cast<double>(t.integer(i)); }

void expect_values_of_operator(const Wide& w, size_t left) {
  const Graph graph = read_wide(w);
  EXPECT_EQ(resizes(graph), left);
  const DType dtype = graph.inputs()[0]->type.dtype;
  Tensor x(dtype, w.from);
  for (int64_t i = 0; i < x.elements(); ++i) {
    if (is_float(dtype))
      x.set_real(i, static_cast<double>(i * 37 % 101) / 32 - 1);
    else
      x.set_integer(i, i * 37 % 251);
  }
  const Tensor y = interpret(graph, {x}).at(0);
  const Tensor expected = run_op("resize",
                                 {{"mode", w.mode},
                                  {"antialias", true},
                                  {"exclude_outside", w.exclude_outside != 0},
                                  {"keep_aspect_ratio_policy", w.policy}},
                                 {x, Tensor(), Tensor(), integers(DType::i64, w.to)});
  ASSERT_EQ(y.sizes(), expected.sizes());
  EXPECT_EQ(y.dtype(), expected.dtype());
  const double tolerance = dtype == DType::f16 ? 2e-3 : 2e-6;
  for (int64_t i = 0; i < y.elements(); ++i) EXPECT_NEAR(value(y, i), value(expected, i), tolerance) << i;
}

/// Opset 10 has no modes: nearest rounds up along axes that shrink (ONNX's own case of 0.6) and down along those that
/// grow.
TEST(ImportResize, OfOpset10RoundsEveryAxisByItsOwnScale) {
  const auto scaled = [](float rows, float columns) {
    const float scales[] = {1, 1, rows, columns};
    ModelBytes m{
        .graph = {.nodes = {node("Resize", {"x", "s"}, {"y"}, {text_attribute("mode", "nearest")}, "resize")},
                  .initializers = {tensor("s", kFloat, {4}, std::string(reinterpret_cast<const char*>(scales), 16))},
                  .inputs = {value_info("x", kFloat, {"1", "1", "2", "4"})},
                  .outputs = {value_info("y", kFloat, {})}}};
    m.opset = 10;
    const Graph graph = read_onnx_bytes(m.text());
    return interpret(graph, {Tensor::of<double>(DType::f32, {1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})})[0];
  };
  const auto expect = [](const Tensor& y, std::vector<int64_t> shape, const std::vector<double>& values) {
    EXPECT_TRUE(y.same_bits(Tensor::of<double>(DType::f32, std::move(shape), values)));
  };
  expect(scaled(0.6F, 0.6F), {1, 1, 1, 2}, {1, 3});
  expect(scaled(1.5F, 0.6F), {1, 1, 3, 2}, {1, 3, 1, 3, 5, 7});
  expect(scaled(1, 1.5F), {1, 1, 2, 6}, {1, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8});
}

/// (4 + 0.5) * 7 / 9 - 0.5 is 3, in doubles with the quotient 9 / 7 a little less; 8 * 3 / 8 is 3, of a float 8 / 3
/// less.
TEST(ImportResize, APositionThatIsWholeIsNotRoundedDown) {
  const Tensor x = Tensor::of<double>(DType::f32, {7}, {0, 1, 2, 3, 4, 5, 6});
  const auto resized = [&](const char* coordinates, const Tensor* scales, const Tensor* sizes) {
    const AttrMap attrs{{"mode", std::string("nearest")},
                        {"nearest_mode", std::string("floor")},
                        {"coordinate_transformation_mode", std::string(coordinates)}};
    return run_op("resize", attrs, {x, Tensor(), scales ? *scales : Tensor(), sizes ? *sizes : Tensor()});
  };
  const Tensor nine = Tensor::from_i64({9}), scale = Tensor::of<double>(DType::f32, {1}, {8.0F / 3.0F});
  EXPECT_EQ(resized("half_pixel", nullptr, &nine).real(4), 3);
  EXPECT_EQ(resized("asymmetric", &scale, nullptr).real(8), 3);
}

TEST(ImportResize, AnAxisWiderThanAKernelIsASumOverWindows) {
  expect_values_of_operator({.from = {1, 2, 300, 3}, .to = {1, 2, 3, 3}}, 0);
  expect_values_of_operator({.mode = "cubic", .from = {2, 1, 5, 400}, .to = {2, 1, 5, 12}}, 0);
  expect_values_of_operator({.mode = "cubic", .from = {150, 2}, .to = {4, 1}, .exclude_outside = 1}, 1);
}

TEST(ImportResize, OfTwoWideAxesOneAfterTheOther) {
  expect_values_of_operator({.from = {1, 1, 200, 90}, .to = {1, 1, 3, 6}}, 1);
  expect_values_of_operator({.from = {1, 1, 200, 90}, .to = {1, 1, 3, 6}, .element_type = 10}, 1);
}

/// Aspects that are kept make axes depend on each other; integers are rounded once.
TEST(ImportResize, AxesThatDependOnEachOtherAreSums) {
  expect_values_of_operator({.from = {200, 90}, .to = {4, 2}, .policy = "not_larger"}, 0);
  expect_values_of_operator({.from = {200, 90}, .to = {4, 2}, .element_type = 2}, 0);
}

TEST(ResizeOfOpenAxes, IsAProductWithTheWeightsOfEach) {
  for (const char* mode : {"linear", "cubic"})
    for (const auto& to : {std::vector<int64_t>{1, 2, 3, 4}, {1, 2, 20, 4}, {1, 2, 11, 16}})
      expect_values_of_operator({.mode = mode, .from = {1, 2, 11, 13}, .to = to, .exclude_outside = 1, .open = true},
                                0);
  expect_values_of_operator({.from = {2, 9, 7}, .to = {2, 3, 5}, .exclude_outside = 1, .open = true}, 0);
  expect_values_of_operator(
      {.from = {1, 9, 7, 2}, .to = {1, 3, 7, 2}, .exclude_outside = 1, .element_type = 10, .open = true}, 0);
}

}  // namespace
}  // namespace opfuse::test
