// Signals without a last axis of one part, as torch.stft is exported.
#include <gtest/gtest.h>

#include "interp/interpreter.hpp"
#include "onnx/model_bytes.hpp"
#include "onnx/read.hpp"

namespace opfuse::test {
namespace {

Tensor spectrum(const Strings& declared, const Tensor& signal) {
  ModelBytes model{.graph = {.nodes = {node("STFT", {"x", "step", "", "length"}, {"y"}, {}, "stft")},
                             .inputs = {value_info("x", kFloat, declared)},
                             .outputs = {value_info("y", kFloat, {"b", "f", "k", "p"})}}};
  model.graph.initializers = {tensor("step", 7, {}, integers({3})), tensor("length", 7, {}, integers({4}))};
  return interpret(read_onnx_bytes(model.text()), {signal}).at(0);
}

TEST(Signal, OfTwoAxesIsReal) {
  std::vector<double> numbers;
  for (int i = 0; i < 22; ++i) numbers.push_back(i * 7 % 5 - 2);
  const Tensor flat = spectrum({"b", "n"}, Tensor::of(DType::f32, {2, 11}, numbers));
  const Tensor parts = spectrum({"b", "n", "1"}, Tensor::of(DType::f32, {2, 11, 1}, numbers));
  EXPECT_EQ(flat.sizes(), (std::vector<int64_t>{2, 3, 3, 2}));
  EXPECT_TRUE(flat.same_bits(parts));
  EXPECT_EQ(flat.real(0), -2 + 0 + 2 - 1);  // the sum of the first frame
}

}  // namespace
}  // namespace opfuse::test
