// Dimensions as expressions over symbols: one form, text and back, overflow refused.
#include "tensor/dim.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/fail.hpp"
#include "base/limits.hpp"

namespace opfuse {
namespace {

Dim sym(const char* name) { return Dim::symbol(name); }

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.diagnostic().name;
  }
  return "";
}

TEST(Dim, EqualExpressionsAreOneForm) {
  const Dim n = sym("n"), h = sym("h");
  EXPECT_EQ(n * 2 + 1, Dim(1) + Dim(2) * n);
  EXPECT_EQ((n + h) * (n - h), n * n - h * h);
  EXPECT_EQ(n - n, Dim(0));
  EXPECT_EQ(floor_div(n * 12, 4), n * 3);
  EXPECT_EQ(floor_div(h + 6 - 7, 2) + 1, floor_div(h + 1, 2));
  EXPECT_EQ(floor_div(floor_div(h - 1, 2), 2), floor_div(h - 1, 4));
  EXPECT_EQ(floor_div(n * (h * 3 + 1) * 8, h * 3 + 1), n * 8);
  EXPECT_EQ(mod(n * 6 + 7, 3), Dim(1));
  EXPECT_EQ(min(n, h), min(h, n));
  EXPECT_EQ(min(n, min(h, n)), min(n, h));
  EXPECT_EQ(max(n + 1, n), n + 1);
  EXPECT_EQ(ceil_div(n * 16, 16), n);
}

TEST(Dim, PrintsReadably) {
  const Dim n = sym("n"), h = sym("h");
  EXPECT_EQ((floor_div(h + 6 - 7, 2) + 1).text(), "(h + 1) / 2");
  EXPECT_EQ((n * 2 - h).text(), "-h + 2*n");
  EXPECT_EQ((Dim(16) * ceil_div(n, 16)).text(), "16*((n + 15) / 16)");
  EXPECT_EQ(min(n, Dim(3)).text(), "min(3, n)");
  EXPECT_EQ(Dim::symbol("a b\"c").text(), "\"a b\\\"c\"");
}

TEST(Dim, RefusesOverflowAndZero) {
  const Dim n = sym("n");
  EXPECT_EQ(error_of([] { Dim(INT64_MAX) + Dim(1); }), "bad_dimension");
  EXPECT_EQ(error_of([] { Dim(INT64_MAX) * Dim(2); }), "bad_dimension");
  EXPECT_EQ(error_of([&] { (n * INT64_MAX) * Dim(2); }), "bad_dimension");
  EXPECT_EQ(error_of([&] { floor_div(n, 0); }), "bad_dimension");
  EXPECT_EQ(error_of([&] { mod(n, 0); }), "bad_dimension");
  EXPECT_EQ(error_of([&] {
              Dim d = n + 1;
              for (int i = 0; i < 12; ++i) d = d * d;
            }),
            "bad_dimension");
  EXPECT_EQ(error_of([] { floor_div(Dim(INT64_MIN), Dim(-1)); }), "bad_dimension");
}

TEST(Dim, TreesWithSharedOperandsAreBounded) {  // 2^40 nodes as a tree
  Dim d = sym("n");
  std::string hint;
  try {
    for (int i = 0; i < 40; ++i) d = floor_div(d, 3) + mod(d, 5);
  } catch (const Error& e) {
    hint = e.diagnostic().hint;
  }
  EXPECT_NE(hint.find("--limit dim_nodes=N"), std::string::npos) << hint;
}

Dim chain(int links) {
  Dim d = sym("n");
  for (int i = 0; i < links; ++i) d = min(floor_div(d + 7, 3), sym("m") + i);
  return d;
}

TEST(Dim, DeepExpressionsAreTextAndBack) {
  const Dim d = chain(100);
  EXPECT_EQ(Dim::parse(d.text()), d);
  EXPECT_EQ(d.evaluate({{"n", 1000}, {"m", 1}}), 3);
}

TEST(Dim, HowDeepTheyMayBeCanBeSet) {
  EXPECT_EQ(error_of([] { chain(200); }), "bad_dimension");
  Limits limits;
  set_limit(limits, "dim_depth", 1000);
  const LimitScope scope(limits);
  EXPECT_EQ(Dim::parse(chain(200).text()), chain(200));
  EXPECT_EQ(error_of([&] { set_limit(limits, "dim_depth", 1'000'000); }), "bad_option");
}

TEST(Dim, QuotientsByMoreThanANumberHoldsStayApart) {
  Dim d = sym("n");
  for (int i = 0; i < 80; ++i) d = floor_div(d, 2);
  EXPECT_EQ(d.evaluate({{"n", INT64_MAX}}), 0);
}

TEST(Dim, NamesAMissingSymbol) {
  EXPECT_EQ(error_of([] { sym("batch").evaluate({{"n", 1}}); }), "missing_dimension");
  EXPECT_EQ(error_of([] { sym("batch").value(); }), "unknown_dimension");
}

TEST(Dim, RefusesBadText) {
  for (const char* bad : {"", "1 +", "(n", "n n", "min(n)", "\"open", "9223372036854775808", "*2", "n // 2", "\"\""}) {
    EXPECT_EQ(error_of([&] { Dim::parse(bad); }), "bad_text") << bad;
  }
  EXPECT_EQ(error_of([] { Dim::parse(std::string(100000, '(')); }), "bad_text");
}

/// A random expression and its value computed without any algebra.
struct Sample {
  Dim dim = 0;
  int64_t value = 0;
};

int64_t floor_of(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

Sample random_sample(int depth, const SymbolValues& values) {
  const int kind = *rc::gen::inRange(0, depth <= 0 ? 2 : 9);
  if (kind == 0) {
    const int64_t c = *rc::gen::inRange<int64_t>(-20, 20);
    return {c, c};
  }
  if (kind == 1) {
    const std::string name = *rc::gen::element<std::string>("a", "b", "c");
    return {Dim::symbol(name), values.at(name)};
  }
  const Sample x = random_sample(depth - 1, values), y = random_sample(depth - 1, values);
  const int64_t c = *rc::gen::inRange<int64_t>(1, 9);
  switch (kind) {
    case 2:
      return {x.dim + y.dim, x.value + y.value};
    case 3:
      return {x.dim - y.dim, x.value - y.value};
    case 4:
      return {x.dim * Dim(c), x.value * c};
    case 5:
      return {floor_div(x.dim, Dim(c)), floor_of(x.value, c)};
    case 6:
      return {mod(x.dim, Dim(c)), x.value - c * floor_of(x.value, c)};
    case 7:
      return {min(x.dim, y.dim), std::min(x.value, y.value)};
    default:
      return {max(x.dim, y.dim), std::max(x.value, y.value)};
  }
}

RC_GTEST_PROP(DimProperty, KeepsItsValueAndItsText, ()) {
  SymbolValues values;
  for (const char* name : {"a", "b", "c"}) values[name] = *rc::gen::inRange<int64_t>(1, 60);
  const Sample s = random_sample(4, values);
  RC_ASSERT(s.dim.evaluate(values) == s.value);
  const std::string text = s.dim.text();
  RC_LOG() << text;
  RC_ASSERT(Dim::parse(text) == s.dim);
  RC_ASSERT(Dim::parse(text).text() == text);
}

TEST(Shape, CountsAndPrints) {
  EXPECT_EQ((Shape{1, 3, sym("h"), 8}).elements(), sym("h") * 24);
  EXPECT_EQ((Shape{}).text(), "[]");
  EXPECT_EQ(Shape::unknown().text(), "[*]");
  EXPECT_EQ(error_of([] { Shape{sym("h")}.sizes(); }), "unknown_dimension");
  EXPECT_EQ((Shape{sym("h"), 2}).evaluate({{"h", 5}}), (std::vector<int64_t>{5, 2}));
}

TEST(Dim, ExtremaDropWhatSymbolsDecide) {
  const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  EXPECT_EQ(max(0, n), n);
  EXPECT_EQ(min(0, n), Dim(0));
  EXPECT_EQ(min(8, max(0, n)), min(n, 8));
  EXPECT_EQ(max(n, n + m), n + m);
  EXPECT_EQ(min(n, n + m), n);
  EXPECT_EQ(max(max(n, m), n + m), n + m);
  EXPECT_EQ(max(0, n - 4).evaluate({{"n", 3}}), 0);
  EXPECT_EQ(min(n, m).evaluate({{"n", 3}, {"m", 2}}), 2);
}

}  // namespace
}  // namespace opfuse
