// Values of elementwise operators: a table of operator x operands x result, edge values included.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "ops/run_op.hpp"

namespace opfuse {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct RealCase {
  const char* op;
  AttrMap attrs;
  std::vector<std::vector<double>> in;
  std::vector<double> out;
};

void PrintTo(const RealCase& c, std::ostream* to) { *to << c.op; }

class RealLaw : public testing::TestWithParam<RealCase> {};

/// Relative to the dtype's precision; a few roundings are allowed.
double tolerance(DType dtype) { return dtype == DType::f16 ? 2e-3 : dtype == DType::bf16 ? 1.6e-2 : 4e-7; }

TEST_P(RealLaw, GivesTheTabulatedValues) {
  const RealCase& c = GetParam();
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    std::vector<Tensor> in;
    for (const auto& values : c.in) in.push_back(reals(dtype, values));
    const Tensor out = run_op(c.op, c.attrs, in);
    ASSERT_EQ(out.elements(), static_cast<int64_t>(c.out.size()));
    for (size_t i = 0; i < c.out.size(); ++i) {
      const double got = out.real(static_cast<int64_t>(i)), want = c.out[i];
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(got)) << c.op << " " << name_of(dtype) << " element " << i << ": " << got;
      else if (std::isinf(want))
        EXPECT_EQ(got, want) << c.op << " " << name_of(dtype) << " element " << i;
      else
        EXPECT_NEAR(got, want, tolerance(dtype) * std::max(1.0, std::fabs(want)))
            << c.op << " " << name_of(dtype) << " element " << i;
    }
  }
}

const RealCase kRealCases[] = {
    {"relu", {}, {{-1, 0, 2, kInf, -kInf, kNan}}, {0, 0, 2, kInf, 0, kNan}},
    {"clip", {{"min", 0.0}, {"max", 6.0}}, {{-1, 3, 7, kInf, -kInf, kNan}}, {0, 3, 6, 6, 0, kNan}},
    {"clip", {{"min", 2.0}}, {{-1, 3, kInf}}, {2, 3, kInf}},
    {"leaky_relu", {{"alpha", 0.25}}, {{-4, 0, 4, kNan}}, {-1, 0, 4, kNan}},
    {"prelu", {}, {{-4, -4, 4}, {0.5, 2, 2}}, {-2, -8, 4}},
    {"elu", {{"alpha", 2.0}}, {{-1, 0, 3, -kInf}}, {2 * (std::exp(-1) - 1), 0, 3, -2}},
    {"selu", {}, {{-1, 0, 1}}, {-1.1113307, 0, 1.0507009}},
    {"celu", {{"alpha", 2.0}}, {{-2, 0, 3}}, {2 * (std::exp(-1) - 1), 0, 3}},
    {"thresholded_relu", {{"alpha", 1.0}}, {{0.5, 1, 1.5}}, {0, 0, 1.5}},
    {"gelu", {}, {{-1, 0, 1, 2}}, {-0.15865525, 0, 0.84134475, 1.9544997}},
    {"gelu", {{"form", std::string("tanh")}}, {{-1, 0, 1}}, {-0.15880801, 0, 0.84119199}},
    {"silu", {}, {{-1, 0, 1}}, {-0.26894142, 0, 0.73105858}},
    {"silu", {{"alpha", 2.0}}, {{1}}, {0.88079708}},
    {"hard_swish", {}, {{-4, -3, 0, 1, 3, 4}}, {0, 0, 0, 2.0 / 3, 3, 4}},
    {"hard_sigmoid", {}, {{-3, 0, 1, 3}}, {0, 0.5, 0.7, 1}},
    {"mish", {}, {{-1, 0, 1}}, {-0.30340146, 0, 0.86509839}},
    {"sigmoid", {}, {{-kInf, -1, 0, 1, kInf, kNan}}, {0, 0.26894142, 0.5, 0.73105858, 1, kNan}},
    {"softplus", {}, {{-kInf, 0, 1, 1000}}, {0, std::log(2), 1.3132617, 1000}},
    {"shrink", {{"lambd", 1.0}, {"bias", 0.5}}, {{-2, -1, 0.5, 3, kNan}}, {-1.5, 0, 0, 2.5, 0}},
    {"softsign", {}, {{-1, 0, 3}}, {-0.5, 0, 0.75}},
    {"tanh", {}, {{-kInf, 0, 1, kInf}}, {-1, 0, 0.76159416, 1}},
    {"erf", {}, {{-kInf, 0, 1, kInf}}, {-1, 0, 0.84270079, 1}},
    {"exp", {}, {{-kInf, 0, 1, kInf}}, {0, 1, 2.7182818, kInf}},
    {"log", {}, {{0, 1, -1, kInf}}, {-kInf, 0, kNan, kInf}},
    {"sqrt", {}, {{0, 4, -1}}, {0, 2, kNan}},
    {"reciprocal", {}, {{2, 0.0, -0.0, kInf}}, {0.5, kInf, -kInf, 0}},
    {"abs", {}, {{-2, 2, -kInf}}, {2, 2, kInf}},
    {"neg", {}, {{-2, 2, kInf}}, {2, -2, -kInf}},
    {"sign", {}, {{-2, 0, 2, kNan}}, {-1, 0, 1, kNan}},
    {"floor", {}, {{-1.5, 1.5, 2}}, {-2, 1, 2}},
    {"ceil", {}, {{-1.5, 1.5, 2}}, {-1, 2, 2}},
    {"round", {}, {{0.5, 1.5, 2.5, -0.5, -1.5, 2.75}}, {0, 2, 2, -0.0, -2, 3}},
    {"sin", {}, {{0, 1}}, {0, 0.84147098}},
    {"cos", {}, {{0, 1}}, {1, 0.54030231}},
    {"tan", {}, {{0, 1}}, {0, 1.5574077}},
    {"asin", {}, {{0, 1, 2}}, {0, 1.5707963, kNan}},
    {"acos", {}, {{1, 0}}, {0, 1.5707963}},
    {"atan", {}, {{0, kInf}}, {0, 1.5707963}},
    {"sinh", {}, {{0, 1}}, {0, 1.1752012}},
    {"cosh", {}, {{0, 1}}, {1, 1.5430806}},
    {"asinh", {}, {{0, 1}}, {0, 0.88137359}},
    {"acosh", {}, {{1, 2, 0}}, {0, 1.3169579, kNan}},
    {"atanh", {}, {{0, 0.5, 1}}, {0, 0.54930614, kInf}},
    {"add", {}, {{1, kInf, kInf}, {2, 1, -kInf}}, {3, kInf, kNan}},
    {"sub", {}, {{1, kInf}, {2, kInf}}, {-1, kNan}},
    {"mul", {}, {{3, 0}, {2, kInf}}, {6, kNan}},
    {"div", {}, {{3, 1, 0}, {2, 0, 0}}, {1.5, kInf, kNan}},
    {"pow", {}, {{2, 2, -2, 0, kNan}, {3, -1, 0.5, 0, 0}}, {8, 0.5, kNan, 1, 1}},
    {"mod", {{"fmod", true}}, {{-5, 5, 5.5}, {3, -3, 2}}, {-2, 2, 1.5}},
    {"min", {}, {{1, 5, kNan}, {2, 4, 0}, {3, 3, 0}}, {1, 3, kNan}},
    {"max", {}, {{1, 5, 0}, {2, 4, kNan}, {3, 3, 0}}, {3, 5, kNan}},
    {"sum", {}, {{1, 2}, {10, 20}, {100, 200}}, {111, 222}},
    {"mean", {}, {{1, 2}, {2, 4}, {6, 6}}, {3, 4}},
    {"identity", {}, {{1, kNan}}, {1, kNan}},
    {"dropout", {}, {{1, 2}}, {1, 2}},
};

INSTANTIATE_TEST_SUITE_P(Elementwise, RealLaw, testing::ValuesIn(kRealCases), [](const auto& param) {
  return std::string(param.param.op) + "_" + std::to_string(param.index);
});

struct IntegerCase {
  const char* op;
  AttrMap attrs;
  DType dtype;
  std::vector<std::vector<int64_t>> in;
  std::vector<int64_t> out;
};

TEST(Elementwise, IntegersFollowOnnx) {
  const IntegerCase cases[] = {
      {"relu", {}, DType::i32, {{-3, 0, 5}}, {0, 0, 5}},
      {"clip", {{"max", 6.0}}, DType::u8, {{3, 200}}, {3, 6}},
      {"abs", {}, DType::i8, {{-128, -3, 3}}, {-128, 3, 3}},
      {"neg", {}, DType::i64, {{-3, 3}}, {3, -3}},
      {"sign", {}, DType::i32, {{-3, 0, 3}}, {-1, 0, 1}},
      {"add", {}, DType::u8, {{250, 1}, {10, 2}}, {4, 3}},
      {"sub", {}, DType::i64, {{1}, {3}}, {-2}},
      {"mul", {}, DType::i32, {{65536}, {65536}}, {0}},
      {"div", {}, DType::i32, {{-7, 7, -7, 7}, {2, -2, -2, 2}}, {-3, -3, 3, 3}},
      {"div", {}, DType::i32, {{INT32_MIN, 5}, {-1, 0}}, {INT32_MIN, 0}},
      {"mod", {}, DType::i32, {{-7, 7, -7, 7, 7}, {3, -3, -3, 3, 0}}, {2, -2, -1, 1, 0}},
      {"mod", {{"fmod", true}}, DType::i32, {{-7, 7, -7}, {3, -3, -3}}, {-1, 1, -1}},
      {"pow", {}, DType::i32, {{2, -3, 5}, {10, 3, 0}}, {1024, -27, 1}},
      {"min", {}, DType::i64, {{1, 9}, {2, 3}}, {1, 3}},
      {"max", {}, DType::i64, {{INT64_MAX}, {INT64_MAX - 1}}, {INT64_MAX}},
      {"bit_shift", {}, DType::u8, {{16, 1, 255}, {1, 8, 4}}, {32, 0, 240}},
      {"bit_shift", {{"direction", std::string("right")}}, DType::u16, {{16, 1}, {2, 16}}, {4, 0}},
      {"bitwise_and", {}, DType::i32, {{12, -1}, {10, 7}}, {8, 7}},
      {"bitwise_or", {}, DType::i32, {{12}, {10}}, {14}},
      {"bitwise_xor", {}, DType::i32, {{12}, {10}}, {6}},
      {"bitwise_not", {}, DType::i8, {{0, -1}}, {-1, 0}},
      {"sum", {}, DType::i32, {{1}, {2}, {3}}, {6}},
  };
  for (const IntegerCase& c : cases) {
    std::vector<Tensor> in;
    for (const auto& values : c.in) in.push_back(integers(c.dtype, values));
    const Tensor out = run_op(c.op, c.attrs, in);
    EXPECT_EQ(out.dtype(), c.dtype) << c.op;
    EXPECT_EQ(out.to_i64(), c.out) << c.op << " " << name_of(c.dtype);
  }
}

TEST(Elementwise, ComparisonsGiveBooleansAndNanIsUnordered) {
  const Tensor a = reals(DType::f32, {1, 2, 3, kNan, kInf}), b = reals(DType::f32, {2, 2, 2, kNan, kInf});
  const std::map<std::string, std::vector<int64_t>> expected = {{"equal", {0, 1, 0, 0, 1}},
                                                                {"less", {1, 0, 0, 0, 0}},
                                                                {"less_or_equal", {1, 1, 0, 0, 1}},
                                                                {"greater", {0, 0, 1, 0, 0}},
                                                                {"greater_or_equal", {0, 1, 1, 0, 1}}};
  for (const auto& [op, want] : expected) {
    const Tensor out = run_op(op, {}, {a, b});
    EXPECT_EQ(out.dtype(), DType::boolean);
    EXPECT_EQ(out.to_i64(), want) << op;
  }
  // 2^53 and 2^53 + 1 are the same double: integers must not pass through doubles.
  const int64_t big = int64_t{1} << 53;
  EXPECT_EQ(run_op("equal", {}, {integers(DType::i64, {big}), integers(DType::i64, {big + 1})}).integer(0), 0);
  EXPECT_EQ(run_op("equal", {}, {integers(DType::boolean, {1, 0}), integers(DType::boolean, {1, 1})}).to_i64(),
            (std::vector<int64_t>{1, 0}));
}

TEST(Elementwise, LogicOnBooleans) {
  const Tensor a = integers(DType::boolean, {0, 0, 1, 1}), b = integers(DType::boolean, {0, 1, 0, 1});
  EXPECT_EQ(run_op("and", {}, {a, b}).to_i64(), (std::vector<int64_t>{0, 0, 0, 1}));
  EXPECT_EQ(run_op("or", {}, {a, b}).to_i64(), (std::vector<int64_t>{0, 1, 1, 1}));
  EXPECT_EQ(run_op("xor", {}, {a, b}).to_i64(), (std::vector<int64_t>{0, 1, 1, 0}));
  EXPECT_EQ(run_op("not", {}, {a}).to_i64(), (std::vector<int64_t>{1, 1, 0, 0}));
}

TEST(Elementwise, InfinityIsFoundBySign) {
  const Tensor x = reals(DType::f32, {-kInf, kInf, 0, kNan});
  EXPECT_EQ(run_op("is_inf", {}, {x}).to_i64(), (std::vector<int64_t>{1, 1, 0, 0}));
  EXPECT_EQ(run_op("is_inf", {{"detect_negative", false}}, {x}).to_i64(), (std::vector<int64_t>{0, 1, 0, 0}));
  EXPECT_EQ(run_op("is_inf", {{"detect_positive", false}}, {x}).to_i64(), (std::vector<int64_t>{1, 0, 0, 0}));
  EXPECT_EQ(run_op("is_inf", {{"detect_positive", false}, {"detect_negative", false}}, {x}).to_i64(),
            (std::vector<int64_t>{0, 0, 0, 0}));
  EXPECT_EQ(run_op("is_nan", {}, {x}).to_i64(), (std::vector<int64_t>{0, 0, 0, 1}));
}

TEST(Elementwise, PowTakesTheTypeOfItsBase) {
  const Tensor two = integers(DType::i32, {2, 3}), half = reals(DType::f32, {0.5, 2});
  EXPECT_EQ(run_op("pow", {}, {two, half}).to_i64(), (std::vector<int64_t>{1, 9}));
  const Tensor out = run_op("pow", {}, {half, two});
  EXPECT_EQ(out.dtype(), DType::f32);
  EXPECT_EQ(out.real(0), 0.25);
  EXPECT_EQ(out.real(1), 8);
  EXPECT_EQ(infer_op("pow", {}, {two, half})[0].dtype, DType::i32);
}

TEST(Elementwise, WhereChoosesAndBroadcasts) {
  const Tensor c = integers(DType::boolean, {1, 0});
  const Tensor a = Tensor::of<double>(DType::f32, {2, 1}, {1, 2}), b = reals(DType::f32, {10, 20});
  const Tensor out = run_op("where", {}, {c, a, b});
  EXPECT_EQ(out.sizes(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(out.real(0), 1);
  EXPECT_EQ(out.real(1), 20);
  EXPECT_EQ(out.real(2), 2);
  const int64_t big = INT64_MAX - 1;
  EXPECT_EQ(run_op("where", {}, {c, integers(DType::i64, {big, 1}), integers(DType::i64, {2, big})}).to_i64(),
            (std::vector<int64_t>{big, big}));
}

TEST(Elementwise, CastRoundsTruncatesSaturatesAndWraps) {
  auto cast = [](const Tensor& x, DType to) { return run_op("cast", {{"to", to}}, {x}); };
  EXPECT_EQ(cast(reals(DType::f32, {1.9, -1.9, 300, -300, kNan}), DType::i8).to_i64(),
            (std::vector<int64_t>{1, -1, 127, -128, 0}));
  EXPECT_EQ(cast(reals(DType::f32, {-1, 256.5}), DType::u8).to_i64(), (std::vector<int64_t>{0, 255}));
  EXPECT_EQ(cast(integers(DType::i32, {300, -1}), DType::u8).to_i64(), (std::vector<int64_t>{44, 255}));
  EXPECT_EQ(cast(reals(DType::f32, {0, 0.25, kNan}), DType::boolean).to_i64(), (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(cast(integers(DType::boolean, {1, 0}), DType::f32).real(0), 1);
  EXPECT_EQ(cast(reals(DType::f64, {2049}), DType::f16).real(0), 2048);  // ties to even
  EXPECT_EQ(cast(integers(DType::i64, {INT64_MAX}), DType::i32).to_i64(), (std::vector<int64_t>{-1}));
  const Tensor like = run_op("cast_like", {}, {reals(DType::f32, {2.5}), integers(DType::i16, {0})});
  EXPECT_EQ(like.dtype(), DType::i16);
  EXPECT_EQ(like.integer(0), 2);
}

TEST(Elementwise, ClipTakesItsLimitsFromOperandsFirst) {
  const Tensor x = reals(DType::f32, {-5, 0, 5}), low = Tensor::scalar(DType::f32, -1),
               high = Tensor::scalar(DType::f32, 1);
  EXPECT_EQ(run_op("clip", {}, {x, low, high}).real(0), -1);
  EXPECT_EQ(run_op("clip", {{"max", 3.0}}, {x, Tensor(), high}).real(2), 1);
  EXPECT_EQ(run_op("clip", {{"max", 3.0}}, {x, low}).real(2), 3);
  EXPECT_EQ(run_op("clip", {}, {x, high, low}).real(1), -1) << "the upper limit wins when they cross";
}

TEST(Elementwise, ExactPrecisionKeepsDoubles) {
  const Tensor third = reals(DType::f64, {1.0 / 3});
  const Tensor out = run_op("add", {}, {third, third}, Precision::exact);
  EXPECT_EQ(out.dtype(), DType::f64);
  EXPECT_EQ(out.real(0), 2.0 / 3);
  EXPECT_EQ(run_op("cast", {{"to", DType::f16}}, {third}, Precision::exact).real(0), 1.0 / 3);
}

TEST(Elementwise, LargeBroadcastsMatchAPlainLoop) {
  Tensor x(DType::f32, {2, 3, 70, 300}), bias(DType::f32, {3, 1, 1}), row(DType::f32, {300});
  for (int64_t i = 0; i < x.elements(); ++i) x.set_real(i, static_cast<double>(i % 1013));
  for (int64_t i = 0; i < 3; ++i) bias.set_real(i, static_cast<double>(1000 * i));
  for (int64_t i = 0; i < 300; ++i) row.set_real(i, 0.5 * static_cast<double>(i));
  const Tensor out = run_op("sum", {}, {x, bias, row});
  ASSERT_EQ(out.sizes(), x.sizes());
  for (int64_t i = 0; i < x.elements(); ++i)
    ASSERT_EQ(out.real(i), x.real(i) + bias.real(i / 21000 % 3) + row.real(i % 300)) << i;
}

TEST(Elementwise, EmptyTensorsGiveEmptyResults) {
  const Tensor out = run_op("add", {}, {Tensor(DType::f32, {0, 3}), Tensor(DType::f32, {1, 3})});
  EXPECT_EQ(out.sizes(), (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(out.elements(), 0);
}

TEST(Elementwise, DropoutRefusesTraining) {
  const Tensor x = reals(DType::f32, {1}), ratio = Tensor::scalar(DType::f32, 0.5), yes = integers(DType::boolean, {1});
  EXPECT_EQ(error_of([&] { infer_op("dropout", {}, {x, ratio, yes}); }), "unsupported_attribute");
  EXPECT_EQ(infer_op("dropout", {}, {x, ratio, integers(DType::boolean, {0})}, 2)[1].dtype, DType::boolean);
}

}  // namespace
}  // namespace opfuse
