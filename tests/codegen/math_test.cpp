// Accuracy of the inlined elementary functions against long double, in units in the last place of float.
#include "codegen/elementary.hpp"

namespace opfuse::test {
namespace {

struct Function {
  std::string name;
  long double (*exact)(long double);
  double ulp;
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
  std::string text = {};  ///< the expression, empty: the name of r0
};

void PrintTo(const Function& f, std::ostream* out) { *out << f.name; }

class Math : public testing::TestWithParam<std::tuple<Function, TargetInfo>> {};

TEST_P(Math, stays_within_its_ulps) {
  const auto& [f, target] = GetParam();
  const std::vector<float> x = float_samples(f.low, f.high);
  KernelSpec spec = spec_of(elementwise(f.name, f.text.empty() ? f.name + "(r0)" : f.text, x.size()), target);
  without_tables(spec);  // those: activation_tables_test.cpp
  const std::vector<float> y = run_elementwise(spec, target, x);
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < x.size(); ++i)
    if (const double d = ulp_distance(y[i], f.exact(x[i])); d > worst) worst = d, at = i;
  EXPECT_LE(worst, f.ulp) << f.name << "(" << x[at] << ") = " << y[at] << ", not "
                          << static_cast<double>(f.exact(x[at]));
}

const std::vector<Function> kFunctions = {
    {"exp", [](long double x) { return std::exp(x); }, 2},
    {"log", [](long double x) { return std::log(x); }, 2},
    {"tanh", [](long double x) { return std::tanh(x); }, 2},
    {"erf", [](long double x) { return std::erf(x); }, 4},
    {"sqrt", [](long double x) { return std::sqrt(x); }, 0.51},
    {"rsqrt", [](long double x) { return 1 / std::sqrt(x); }, 1.5},
    {"reciprocal", [](long double x) { return 1 / x; }, 0.51},
    {"sin", [](long double x) { return std::sin(x); }, 1},
    {"cos", [](long double x) { return std::cos(x); }, 1},
    {"tan", [](long double x) { return std::tan(x); }, 1},
    {"asin", [](long double x) { return std::asin(x); }, 1},
    {"acos", [](long double x) { return std::acos(x); }, 1},
    {"atan", [](long double x) { return std::atan(x); }, 1},
    {"sinh", [](long double x) { return std::sinh(x); }, 1},
    {"cosh", [](long double x) { return std::cosh(x); }, 1},
    {"asinh", [](long double x) { return std::asinh(x); }, 1},
    {"acosh", [](long double x) { return std::acosh(x); }, 1},
    {"atanh", [](long double x) { return std::atanh(x); }, 1},
    {"sigmoid", [](long double x) { return 1 / (1 + std::exp(-x)); }, 3, -87, std::numeric_limits<float>::infinity(),
     "div(1, add(1, exp(neg(r0))))"},
    {"silu", [](long double x) { return x / (1 + std::exp(-x)); }, 3, -87, std::numeric_limits<float>::max(),
     "div(r0, add(1, exp(neg(r0))))"},
    {"far_numerator", [](long double x) { return 1e30L / (1 + std::exp(x)); }, 3, 80, 88, "div(1e30, add(1, exp(r0)))"},
    {"quotient", [](long double x) { return x / 1.41421354F; }, 0.501, 1e-30F, std::numeric_limits<float>::infinity(),
     "div(r0, 1.41421354)"},
    {"small_quotient", [](long double x) { return x / -3e9F; }, 1.01, -std::numeric_limits<float>::infinity(), 1e-20F,
     "div(r0, -3e9)"},
    {"remainder", [](long double x) { return std::fmod(x, 0.375L); }, 0, -std::numeric_limits<float>::infinity(),
     std::numeric_limits<float>::infinity(), "fmod(r0, 0.375)"},
    {"divisor", [](long double x) { return std::fmod(0x1.8p109L, x); }, 0, -std::numeric_limits<float>::infinity(),
     std::numeric_limits<float>::infinity(), "fmod(9.735556609752802e32, r0)"},
    {"floor", [](long double x) { return std::floor(x); }, 0},
    {"ceil", [](long double x) { return std::ceil(x); }, 0},
    {"round_even", [](long double x) { return std::nearbyint(x); }, 0},
};
INSTANTIATE_TEST_SUITE_P(Functions, Math,
                         testing::Combine(testing::ValuesIn(kFunctions), testing::ValuesIn(runnable_targets())),
                         [](const auto& info) {
                           Case c;
                           c.name = std::get<0>(info.param).name;
                           return case_name(c, std::get<1>(info.param));
                         });

}  // namespace
}  // namespace opfuse::test
