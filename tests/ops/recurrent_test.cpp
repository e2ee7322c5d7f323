// RNN, LSTM and GRU against their formulas; sequence lengths, directions, open dimensions.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/recurrent_cell.hpp"
#include "ops/run_op.hpp"

namespace opfuse {
namespace {

Tensor cube(std::vector<int64_t> sizes, const std::vector<double>& values) {
  return Tensor::of(DType::f64, std::move(sizes), values);
}

std::vector<double> values_of(const Tensor& t) {
  std::vector<double> values;
  for (int64_t i = 0; i < t.elements(); ++i) values.push_back(t.real(i));
  return values;
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Recurrent, AnRnnOfOneUnitIsItsFormula) {
  const auto y =
      run_all("rnn", {},
              {cube({2, 1, 1}, {0.5, -1}), cube({1, 1, 1}, {2}), cube({1, 1, 1}, {-0.5}), cube({1, 2}, {0.25, 0.125})});
  const double first = std::tanh(2 * 0.5 + 0.375), second = std::tanh(-2 - 0.5 * first + 0.375);
  EXPECT_NEAR(y[0].real(0), first, 1e-12);
  EXPECT_NEAR(y[0].real(1), second, 1e-12);
  EXPECT_NEAR(y[1].real(0), second, 1e-12);
}

TEST(Recurrent, AnLstmHasItsGatesInOnnxsOrder) {
  const Tensor w = cube({1, 4, 1}, {0.1, 0.2, 0.3, 0.4}), r = cube({1, 4, 1}, {0, 0, 0, 0});
  const Tensor c0 = cube({1, 1, 1}, {0.7}), p = cube({1, 3}, {0.5, 0.6, 0.8});
  const auto y = run_all("lstm", {}, {cube({1, 1, 1}, {1}), w, r, {}, {}, {}, c0, p});
  const double c = logistic(0.3 + 0.8 * 0.7) * 0.7 + logistic(0.1 + 0.5 * 0.7) * std::tanh(0.4);
  EXPECT_NEAR(y[2].real(0), c, 1e-12);
  EXPECT_NEAR(y[0].real(0), logistic(0.2 + 0.6 * c) * std::tanh(c), 1e-12);
}

TEST(Recurrent, AGruResetsBeforeOrBehindItsProduct) {
  const std::vector<Tensor> operands = {cube({1, 1, 1}, {1}),
                                        cube({1, 3, 1}, {0.1, 0.2, 0.3}),
                                        cube({1, 3, 1}, {0, 0, 2}),
                                        cube({1, 6}, {0, 0, 0, 0, 0, 0.5}),
                                        {},
                                        cube({1, 1, 1}, {0.4})};
  const double z = logistic(0.1), r = logistic(0.2);
  const auto state = [&](double n) { return (1 - z) * std::tanh(n) + z * 0.4; };
  EXPECT_NEAR(run_op("gru", {}, operands).real(0), state(0.3 + 2 * r * 0.4 + 0.5), 1e-12);
  EXPECT_NEAR(run_op("gru", {{"linear_before_reset", true}}, operands).real(0), state(0.3 + r * (2 * 0.4 + 0.5)),
              1e-12);
}

TEST(Recurrent, ASequenceEndsAtItsLength) {
  const std::vector<Tensor> operands = {cube({3, 2, 1}, {1, 1, 1, 1, 1, 1}),
                                        cube({1, 1, 1}, {1}),
                                        cube({1, 1, 1}, {1}),
                                        {},
                                        integers(DType::i32, {1, 3})};
  const auto forward = run_all("rnn", {{"activations", std::vector<std::string>{"Affine"}}}, operands);
  EXPECT_EQ(values_of(forward[0]), (std::vector<double>{1, 1, 0, 2, 0, 3}));
  EXPECT_EQ(values_of(forward[1]), (std::vector<double>{1, 3}));
  const auto backward = run_all(
      "rnn", {{"activations", std::vector<std::string>{"affine"}}, {"direction", std::string("reverse")}}, operands);
  EXPECT_EQ(values_of(backward[0]), (std::vector<double>{1, 3, 0, 2, 0, 1}));
  EXPECT_EQ(values_of(backward[1]), (std::vector<double>{1, 3}));
}

TEST(Recurrent, NumbersGoToTheFunctionsThatHaveSome) {
  const auto f = cell_functions(CellKind::lstm, 1, {"Tanh", "HardSigmoid", "LeakyRelu"}, {0.3, 0.7}, {0.4});
  EXPECT_EQ(f[1].alpha, 0.3);
  EXPECT_EQ(f[1].beta, 0.4);
  EXPECT_EQ(f[2].alpha, 0.7);
  EXPECT_EQ(cell_functions(CellKind::rnn, 1, {"LeakyRelu"}, {}, {})[0].alpha, 0.01);
}

TEST(Recurrent, OpenDimensionsFlowThrough) {
  const Dim t = Dim::symbol("t"), b = Dim::symbol("b");
  const std::vector<TensorType> types = {{DType::f32, {b, t, 5}}, {DType::f32, {2, 12, 5}}, {DType::f32, {2, 12, 3}}};
  EXPECT_EQ(infer_types("lstm", {{"direction", std::string("bidirectional")}, {"layout", int64_t{1}}}, types).text(),
            (TensorType{DType::f32, {b, t, 2, 3}}).text());
}

TEST(Recurrent, RefusesWhatDoesNotFit) {
  const Tensor x = cube({1, 1, 1}, {1}), w = cube({1, 1, 1}, {1});
  const auto infer = [&](const AttrMap& attrs) { return error_of([&] { infer_op("rnn", attrs, {x, w, w}, 2); }); };
  EXPECT_EQ(infer({}), "none");
  EXPECT_EQ(infer({{"direction", std::string("sideways")}}), "bad_attribute");
  EXPECT_EQ(infer({{"activations", std::vector<std::string>{"Tanh", "Tanh"}}}), "bad_attribute");
  EXPECT_EQ(infer({{"activations", std::vector<std::string>{"Sine"}}}), "bad_attribute");
  EXPECT_EQ(infer({{"activations", std::vector<std::string>{"ScaledTanh"}}}), "bad_attribute");
  EXPECT_EQ(infer({{"layout", int64_t{2}}}), "bad_attribute");
  EXPECT_EQ(infer({{"clip", -1.0}}), "bad_attribute");
  EXPECT_NE(infer({{"hidden_size", int64_t{2}}}), "none");
  EXPECT_NE(error_of([&] { infer_op("lstm", {}, {x, w, w}, 3); }), "none");
}

}  // namespace
}  // namespace opfuse
