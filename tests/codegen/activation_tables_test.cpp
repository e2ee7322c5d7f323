// Activations by tables: how close they are, which expressions have them and which must not.
#include <numbers>

#include "codegen/elementary.hpp"

namespace opfuse::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Activation {
  std::string name;
  TabledActivation activation;
  long double (*exact)(long double);
  double ulp;    ///< above -1
  double below;  ///< absolute, below -1
  std::vector<std::string> spellings;
};

void PrintTo(const Activation& a, std::ostream* out) { *out << a.name; }

class Tables : public testing::TestWithParam<std::tuple<Activation, TargetInfo>> {
 protected:
  const Activation& activation() const { return std::get<0>(GetParam()); }
  const TargetInfo& target() const { return std::get<1>(GetParam()); }
  KernelSpec spec(const std::string& text, size_t n) const {
    return spec_of(elementwise(activation().name, text, n), target());
  }
};

TEST_P(Tables, stay_within_their_bounds) {
  if (target().lanes_f32() != 16) GTEST_SKIP() << "no tables";
  const std::vector<float> x = float_samples(-kInfinity, kInfinity);
  const std::vector<float> y = run_elementwise(spec(activation().spellings[0], x.size()), target(), x);
  double ulp = 0, below = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const long double want = activation().exact(x[i]);
    if (std::isinf(x[i]) && x[i] < 0) continue;
    if (x[i] > -1 || std::isnan(x[i]))
      ulp = std::max(ulp, ulp_distance(y[i], want));
    else
      below = std::max(below, static_cast<double>(std::fabs(y[i] - want)));
  }
  EXPECT_LE(ulp, activation().ulp);
  EXPECT_LE(below, activation().below);
}

TEST_P(Tables, keep_what_is_no_number_and_end_near_zero) {
  if (target().lanes_f32() != 16) GTEST_SKIP() << "no tables";
  std::vector<float> x(64, std::numeric_limits<float>::quiet_NaN());
  x[1] = kInfinity, x[2] = -kInfinity, x[3] = -1e30F, x[4] = 0.0F, x[5] = -0.0F, x[6] = 1e30F;
  const std::vector<float> y = run_elementwise(spec(activation().spellings[0], x.size()), target(), x);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_TRUE(std::isnan(y[63]));
  EXPECT_EQ(y[1], kInfinity);
  EXPECT_NEAR(y[2], 0, 1e-7);
  EXPECT_NEAR(y[3], 0, 1e-7);
  EXPECT_EQ(y[4], 0);
  EXPECT_EQ(y[5], 0);
  EXPECT_EQ(y[6], 1e30F);
}

TEST_P(Tables, serve_every_spelling) {
  const std::vector<float> x = float_samples(-90, 90);
  std::vector<float> first;
  for (const std::string& text : activation().spellings) {
    KernelSpec tabled = spec(text, x.size());
    const bool has = target().lanes_f32() == 16;
    EXPECT_EQ(tabled.schedule.get(kActivationTables, 0), has) << text;
    EXPECT_EQ(tabled_activations(tabled.region, target()).count(activation().activation), has) << text;
    const std::vector<float> y = run_elementwise(tabled, target(), x);
    if (first.empty()) first = y;
    if (!has) continue;
    EXPECT_EQ(std::memcmp(first.data(), y.data(), y.size() * sizeof(float)), 0) << text;
    without_tables(tabled);
    const std::vector<float> strict = run_elementwise(tabled, target(), x);
    EXPECT_NE(std::memcmp(strict.data(), y.data(), y.size() * sizeof(float)), 0) << text << " has another form";
  }
}

/// The argument may be a product itself, of the same factors in any order.
TEST(GeluOfProducts, IsFound) {
  for (const char* text : {"mul(mul(mul(r0, r1), 0.5), add(1, erf(mul(mul(r0, r1), 0.70710678))))",
                           "mul(mul(r0, r1), mul(0.5, add(1, erf(div(mul(r0, r1), 1.41421354)))))"}) {
    const auto form = activation_form(Expr::parse(text));
    ASSERT_TRUE(form) << text;
    EXPECT_EQ(form->activation, TabledActivation::gelu);
    EXPECT_EQ(form->x.text(), "mul(r0, r1)");
  }
}

const std::vector<Activation> kActivations = {
    {"silu",
     TabledActivation::silu,
     [](long double x) { return x < -11000 ? 0 : x / (1 + std::exp(-x)); },
     2.6,
     4e-7,
     {"div(r0, add(1, exp(neg(r0))))", "div(r0, add(~1, exp(neg(r0))))", "div(r0, add(exp(neg(r0)), 1))",
      "mul(r0, div(1, add(1, exp(neg(r0)))))", "mul(div(1, add(1, exp(neg(r0)))), r0)",
      "mul(r0, reciprocal(add(1, exp(neg(r0)))))"}},
    {"gelu",
     TabledActivation::gelu,
     [](long double x) { return x * std::erfc(-x * std::sqrt(0.5L)) / 2; },
     3.1,
     3e-7,
     {"mul(mul(~0.5, r0), add(~1, erf(mul(r0, ~0.7071067811865476))))",
      "mul(mul(r0, 0.5), add(1, erf(mul(r0, 0.70710678))))", "mul(mul(r0, add(1, erf(div(r0, 1.41421354)))), 0.5)",
      "mul(r0, mul(add(erf(div(r0, 1.41421354)), 1), 0.5))", "div(mul(add(1, erf(mul(0.70710678, r0))), r0), 2)",
      "mul(add(1, erf(div(r0, 1.41421354))), div(r0, 2))"}},
    {"gelu_rounded",
     TabledActivation::gelu_rounded,
     [](long double x) { return x * std::erfc(-x / 1.4140625L) / 2; },
     5,
     3e-7,
     {"mul(mul(r0, add(1, erf(div(r0, 1.4140625)))), 0.5)", "mul(r0, mul(add(erf(div(r0, 1.4140625)), 1), 0.5))",
      "div(mul(add(1, erf(div(r0, 1.4140625))), r0), 2)"}},
    {"gelu_tanh",
     TabledActivation::gelu_tanh,
     [](long double x) {
       return x / (1 + std::exp(-2 * std::sqrt(2 / std::numbers::pi_v<long double>) * (x + 0.044715L * x * x * x)));
     },
     3,
     3e-7,
     {"mul(mul(~0.5, r0), add(~1, tanh(mul(~0.7978845608028654, add(r0, mul(mul(mul(~0.044715, r0), r0), r0))))))",
      "mul(mul(r0, 0.5), add(tanh(mul(add(r0, mul(pow(r0, 3), 0.044715)), 0.79788458)), 1))",
      "mul(r0, mul(add(1, tanh(mul(0.79788458, add(mul(0.044715, mul(r0, mul(r0, r0))), r0)))), 0.5))"}},
};
INSTANTIATE_TEST_SUITE_P(Activations, Tables,
                         testing::Combine(testing::ValuesIn(kActivations), testing::ValuesIn(runnable_targets())),
                         [](const auto& info) {
                           Case c;
                           c.name = std::get<0>(info.param).name;
                           return case_name(c, std::get<1>(info.param));
                         });

struct Other {
  std::string name, text, dtype = "f32";
};

void PrintTo(const Other& o, std::ostream* out) { *out << o.text; }

class NoTables : public testing::TestWithParam<Other> {};

/// The knob would change nothing.
TEST_P(NoTables, for_what_is_another_function) {
  const TargetInfo target = parse_target("cpu:avx512");
  const auto& [name, text, dtype] = GetParam();
  Case c = elementwise(name, text, 64, dtype);
  c.low = -4, c.high = 4;
  if (dtype == "f16") c.tolerance = 2e-3;
  KernelSpec spec = spec_of(c, target);
  EXPECT_EQ(spec.schedule.get(kActivationTables, 0), 0);
  EXPECT_TRUE(tabled_activations(spec.region, target).empty());
  for (const TargetInfo& runnable : runnable_targets()) {
    spec.schedule.set(kActivationTables, 1);
    check_spec(c, spec, runnable);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Expressions, NoTables,
    testing::Values(
        Other{"alpha", "div(r0, add(1, exp(neg(mul(r0, 1.702)))))"}, Other{"positive", "div(r0, add(1, exp(r0)))"},
        Other{"other_numerator", "div(mul(r0, 2), add(1, exp(neg(r0))))"},
        Other{"other_factor", "mul(mul(r0, r0), div(1, add(1, exp(neg(r0)))))"},
        Other{"sigmoid", "div(1, add(1, exp(neg(r0))))"}, Other{"other_one", "div(r0, add(2, exp(neg(r0))))"},
        Other{"no_half", "mul(r0, add(1, erf(mul(r0, 0.70710678))))"},
        Other{"other_scale", "mul(mul(r0, 0.5), add(1, erf(mul(r0, 0.72))))"},
        Other{"other_half", "mul(mul(r0, 0.5001), add(1, erf(mul(r0, 0.70710678))))"},
        Other{"erfc", "mul(mul(r0, 0.5), sub(1, erf(mul(r0, 0.70710678))))"},
        Other{"square", "mul(mul(mul(r0, r0), 0.5), add(1, erf(mul(r0, 0.70710678))))"},
        Other{"other_x", "mul(mul(abs(r0), 0.5), add(1, erf(mul(r0, 0.70710678))))"},
        Other{"half_gelu", "mul(mul(r0:f16, ~0.5), add(~1, erf(mul(r0:f16, ~0.7071067811865476))))", "f16"},
        Other{"other_cubic", "mul(mul(r0, 0.5), add(1, tanh(mul(add(r0, mul(pow(r0, 3), 0.0447)), 0.79788458))))"},
        Other{"other_power", "mul(mul(r0, 0.5), add(1, tanh(mul(add(r0, mul(mul(r0, r0), 0.044715)), 0.79788458))))"},
        Other{"other_tanh_scale", "mul(mul(r0, 0.5), add(1, tanh(mul(add(r0, mul(pow(r0, 3), 0.044715)), 0.8))))"},
        Other{"double", "div(r0:f64, add(~1, exp(neg(r0:f64))))", "f64"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace opfuse::test
