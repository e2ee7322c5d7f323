// Expressions: one node for equal ones, folding, types, text and back.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "base/fail.hpp"
#include "expr/domain.hpp"
#include "expr/evaluator.hpp"
#include "expr/held_ops.hpp"
#include "expr/visit_each.hpp"

namespace opfuse {
namespace {

const Expr x = Expr::read(0, DType::f32);
const Expr y = Expr::read(1, DType::f32);

ScalarValue real(double v) { return {DType::f32, v, 0}; }
double value_at(const Expr& e, double at, Precision p = Precision::exact) {
  return evaluate(e, p, [&](const Expr&) { return real(at); }).as_real();
}

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.diagnostic().name;
  }
  return "";
}

TEST(Expr, EqualExpressionsAreOneNode) {
  EXPECT_EQ((x + y).node(), (x + y).node());
  EXPECT_NE((x + y).node(), (y + x).node());
}

TEST(Expr, FoldsConstantsAndExactIdentitiesOnly) {
  EXPECT_EQ(x * Expr(1), x);
  EXPECT_EQ(x - Expr(0), x);
  EXPECT_EQ((x + Expr(0)).op(), ExprOp::add) << "-0.0 + 0.0 is 0.0";
  EXPECT_EQ(x + Expr(-0.0), x);
  EXPECT_EQ((x * Expr(0)).op(), ExprOp::mul) << "NaN * 0 is NaN";
  EXPECT_EQ(select(less(x, y), x, x), x);
  EXPECT_TRUE((Expr(2) * Expr(3)).weak());
  EXPECT_EQ((Expr(2) * Expr(3)).value(), 6);
}

TEST(Expr, WeakConstantsTakeTheTypeTheyMeet) {
  const Expr i = Expr::read(0, DType::i32);
  EXPECT_EQ((i * Expr(3)).dtype(), DType::i32);
  EXPECT_EQ((i * Expr(3)).args()[1].dtype(), DType::i32);
  const Expr chosen = select(less(x, Expr(0)), Expr(1), Expr(2));
  EXPECT_TRUE(chosen.weak());
  EXPECT_EQ((x * chosen).args()[1].args()[1].dtype(), DType::f32);
  EXPECT_EQ(error_of([&] { i* Expr(0.5); }), "dtype_mismatch");
}

TEST(Expr, RefusesOperandsThatDoNotFit) {
  const Expr i = Expr::read(2, DType::i32);
  EXPECT_EQ(error_of([&] { x + i; }), "dtype_mismatch");
  EXPECT_EQ(error_of([&] { exp(i); }), "dtype_mismatch");
  EXPECT_EQ(error_of([&] { bit_and(x, y); }), "dtype_mismatch");
  EXPECT_EQ(error_of([&] { logical_and(x, y); }), "dtype_mismatch");
  EXPECT_EQ(error_of([&] { select(x, y, y); }), "dtype_mismatch");
}

TEST(Expr, SharedOperationsPrintOnce) {
  const Expr e = exp(x);
  EXPECT_EQ((e / (e + Expr(1))).text(), "t0 = exp(r0); div(t0, add(t0, 1))");
  Expr deep = x;
  for (int i = 0; i < 60; ++i) deep = deep * deep;  // 2^60 paths
  EXPECT_EQ(Expr::parse(deep.text()), deep);
  EXPECT_EQ(deep.map_leaves([](const Expr& leaf) { return leaf; }), deep);
}

TEST(Expr, EveryLeafAndConstantReadsBack) {
  const std::vector<Expr> samples = {Expr::read(3, DType::i8),
                                     Expr::in_bounds(2),
                                     Expr::coord(1),
                                     Expr::result(0, DType::f16),
                                     Expr::extent(Dim::symbol("n}") + 1),
                                     Expr::constant(DType::f32, 0.1),
                                     Expr::constant(DType::bf16, -INFINITY),
                                     Expr::constant(DType::f64, NAN),
                                     Expr::constant(DType::f32, -0.0),
                                     Expr::integer(DType::i64, INT64_MIN),
                                     Expr::integer(DType::u64, -1),
                                     Expr::integer(DType::boolean, 1),
                                     Expr(0.25),
                                     cast(x, DType::i8),
                                     is_nan(x),
                                     Expr::constant(DType::f32, 1e-30),
                                     Expr(1e20)};
  for (const Expr& e : samples) EXPECT_EQ(Expr::parse(e.text()).text(), e.text());
  for (const Expr& e : samples) {
    if (e.is_constant() && std::isnan(e.value())) continue;
    EXPECT_EQ(Expr::parse(e.text()), e) << e.text();
  }
}

TEST(Expr, RefusesBadText) {
  for (const char* bad :
       {"", "add(r0)", "add(r0, r1", "foo(r0)", "r", "r-1", "t0 = exp(r0); ", "t0 = r0; t0 = r1; t0", "cast<q>(r0)",
        "{n", "1.5:i32", "r0 r1", "~", "add(r0, r1:i8)", "exp()", "constant()", "99999999999999999999:i64"}) {
    EXPECT_NE(error_of([&] { Expr::parse(bad); }), "") << bad;
    EXPECT_NE(error_of([&] { Expr::parse(bad); }), "internal") << bad;
  }
  std::string nested;
  for (int i = 0; i < 100000; ++i) nested += "exp(";
  EXPECT_EQ(error_of([&] { Expr::parse(nested); }), "bad_text");
}

TEST(Evaluate, TouchesOnlyTheChosenBranch) {
  const Expr guarded = select(Expr::in_bounds(0), x, Expr(0));
  const ScalarValue v = evaluate(guarded, Precision::exact, [](const Expr& leaf) -> ScalarValue {
    if (leaf.op() == ExprOp::in_bounds) return {DType::boolean, 0, 0};
    throw std::logic_error("read out of bounds");
  });
  EXPECT_EQ(v.real, 0);
}

TEST(Evaluate, TypedRoundsEveryValue) {
  const Expr h = Expr::read(0, DType::f16);
  const Expr e = (h + Expr(2048)) - Expr(2048);
  const auto leaf = [](const Expr&) { return ScalarValue{DType::f16, 0.75, 0}; };
  EXPECT_EQ(evaluate(e, Precision::exact, leaf).real, 0.75);
  EXPECT_EQ(evaluate(e, Precision::typed, leaf).real, 0);  // 2048.75 rounds to 2048 in half
  EXPECT_EQ(value_at(x * Expr(0.1), 1, Precision::typed), static_cast<double>(0.1f));
}

TEST(Evaluate, LeavesMayEvaluateOtherExpressions) {
  const Expr inner = exp(y);
  const double v = evaluate(x + x * x, Precision::exact, [&](const Expr&) { return real(value_at(inner, 1)); }).real;
  EXPECT_DOUBLE_EQ(v, std::exp(1) + std::exp(2));
}

int64_t int_op(ExprOp op, DType dtype, int64_t a, int64_t b) {
  return evaluate_op(op, dtype, {{dtype, 0, a}, {dtype, 0, b}}, Precision::exact).integer;
}

TEST(EvaluateOp, IntegersNeverTrap) {
  EXPECT_EQ(int_op(ExprOp::div, DType::i32, 7, 0), 0);
  EXPECT_EQ(int_op(ExprOp::mod, DType::i64, 7, 0), 0);
  EXPECT_EQ(int_op(ExprOp::div, DType::i64, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(int_op(ExprOp::div, DType::i32, INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(int_op(ExprOp::add, DType::i8, 127, 1), -128);
  EXPECT_EQ(int_op(ExprOp::mul, DType::u8, 16, 17), 16);
  EXPECT_EQ(int_op(ExprOp::div, DType::i32, -7, 2), -3);
  EXPECT_EQ(int_op(ExprOp::mod, DType::i32, -7, 2), 1);
  EXPECT_EQ(int_op(ExprOp::fmod, DType::i32, -7, 2), -1);
  EXPECT_EQ(int_op(ExprOp::max, DType::u64, -1, 1), -1) << "unsigned";
  EXPECT_EQ(int_op(ExprOp::shift_left, DType::u8, 1, 8), 0);
  EXPECT_EQ(int_op(ExprOp::shift_right, DType::u32, 8, 64), 0);
  EXPECT_EQ(int_op(ExprOp::pow, DType::i64, -2, 3), -8);
  EXPECT_EQ(int_op(ExprOp::pow, DType::i64, 2, -1), 0);
}

TEST(EvaluateOp, MinAndMaxKeepNaN) {
  for (ExprOp op : {ExprOp::min, ExprOp::max}) {
    EXPECT_TRUE(std::isnan(evaluate_op(op, DType::f32, {real(NAN), real(1)}, Precision::exact).real));
    EXPECT_TRUE(std::isnan(evaluate_op(op, DType::f32, {real(1), real(NAN)}, Precision::exact).real));
  }
}

TEST(EvaluateOp, CastsSaturateFromRealsAndWrapFromIntegers) {
  EXPECT_EQ(evaluate_op(ExprOp::cast, DType::i8, {real(300)}, Precision::exact).integer, 127);
  EXPECT_EQ(evaluate_op(ExprOp::cast, DType::u8, {{DType::i32, 0, 300}}, Precision::exact).integer, 44);
  EXPECT_EQ(evaluate_op(ExprOp::cast, DType::f64, {{DType::u64, 0, -1}}, Precision::exact).real, 0x1p64);
  EXPECT_EQ(evaluate_op(ExprOp::cast, DType::boolean, {real(0.5)}, Precision::exact).integer, 1);
}

TEST(Domains, AgreeOnALaw) {
  auto law = []<class S>(const S& v) { return select(less(v, S(0)), S(0.1) * v, tanh(v) + erf(v)); };
  for (double at : {-3.0, -0.0, 0.5, 2.0}) {
    const double plain = law(at);
    EXPECT_EQ(law(Scalar(real(at))).v.real, plain);
    EXPECT_EQ(value_at(law(x), at), plain);
  }
}

Expr random_expr(int depth) {
  const int kind = *rc::gen::inRange(0, depth <= 0 ? 3 : 8);
  switch (kind) {
    case 0:
      return Expr::read(*rc::gen::inRange(0, 3), DType::f32);
    case 1:
      return Expr(*rc::gen::inRange(-4, 5) * 0.5);
    case 2:
      return Expr::constant(DType::f32, *rc::gen::inRange(-4, 5) * 0.25);
    case 3:
      return Expr::make(*rc::gen::element(ExprOp::neg, ExprOp::abs, ExprOp::exp, ExprOp::tanh, ExprOp::floor),
                        {random_expr(depth - 1)});
    case 4:
      return select(less(random_expr(depth - 1), random_expr(depth - 1)), random_expr(depth - 1),
                    random_expr(depth - 1));
    default:
      return Expr::make(*rc::gen::element(ExprOp::add, ExprOp::sub, ExprOp::mul, ExprOp::max, ExprOp::min),
                        {random_expr(depth - 1), random_expr(depth - 1)});
  }
}

RC_GTEST_PROP(ExprProperty, TextReadsBackToTheSameNode, ()) {
  const Expr e = random_expr(5);
  RC_LOG() << e.text();
  const Expr back = Expr::parse(e.text());
  RC_ASSERT(back.text() == e.text());
  if (e.text().find("nan") == std::string::npos) RC_ASSERT(back == e);
}

RC_GTEST_PROP(ExprProperty, HoldsWhatAWalkFinds, ()) {
  const Expr e = random_expr(5);
  RC_LOG() << e.text();
  for (const ExprOp op : {ExprOp::read, ExprOp::constant, ExprOp::neg, ExprOp::exp, ExprOp::tanh, ExprOp::select,
                          ExprOp::min, ExprOp::pow, ExprOp::bit_cast}) {
    bool found = false;
    e.visit([&](const Expr& x) { found |= x.op() == op; });
    RC_ASSERT(holds(e, op) == found);
  }
  RC_ASSERT(calls_function(e) == (holds(e, ExprOp::exp) || holds(e, ExprOp::tanh)));
}

TEST(Expr, HoldsEachOfSeveralOperations) {
  const Expr e = Expr::parse("add(r0, sqrt(r1))");
  EXPECT_TRUE(holds(e, ExprOps(ExprOp::mul) | ExprOp::sqrt));
  EXPECT_FALSE(holds(e, ExprOps(ExprOp::mul) | ExprOp::in_bounds));
  EXPECT_TRUE(holds(e, ExprOps::between(ExprOp::log, ExprOp::rsqrt)));
  EXPECT_FALSE(holds(e, ExprOps::between(ExprOp::rsqrt, ExprOp::floor)));
  EXPECT_FALSE(holds(Expr(), ExprOp::read));
  EXPECT_TRUE(calls_function(Expr::parse("pow(r0, 2)")));
  EXPECT_FALSE(calls_function(Expr::parse("floor(r0)")));
}

TEST(Expr, VisitsWhatSeveralShareOnce) {
  const Expr shared = Expr::parse("exp(r0)"), a = Expr::parse("add(exp(r0), r1)"), b = Expr::parse("mul(exp(r0), r1)");
  const Expr none;
  const std::vector<const Expr*> values{&a, &none, &b, &a};
  std::vector<Expr> met;
  visit_each(values, [&](const Expr& e) { met.push_back(e); });
  EXPECT_EQ(met, (std::vector<Expr>{Expr::parse("r0"), shared, Expr::parse("r1"), a, b}));
}

TEST(Expr, ReplacesAPartWhereverItIs) {
  const Expr e = Expr::parse("add(exp(sub(r0, s0)), mul(exp(sub(r0, s0)), 2))");
  const Expr part = Expr::parse("exp(sub(r0, s0))"), other = Expr::parse("r1");
  EXPECT_EQ(replaced(e, part, other), Expr::parse("add(r1, mul(r1, 2))"));
  EXPECT_EQ(replaced(e, e, other), other);
  EXPECT_EQ(replaced(e, Expr::parse("exp(r0)"), other), e);
  const std::vector<Expr> nodes = nodes_of(e);
  EXPECT_EQ(nodes.back(), e);
  EXPECT_EQ(std::count(nodes.begin(), nodes.end(), part), 1);
}

}  // namespace
}  // namespace opfuse
