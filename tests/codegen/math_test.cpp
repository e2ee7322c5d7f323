// Accuracy of the inlined elementary functions against long double, in units in the last place of float.
#include <cmath>
#include <cstring>
#include <limits>

#include "codegen/run_kernel.hpp"

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

/// Every 2^k-th float pattern of the range, and the special ones.
std::vector<float> samples(const Function& f) {
  const std::vector<float> special = {0.0f,
                                      -0.0f,
                                      1.0f,
                                      -1.0f,
                                      std::numeric_limits<float>::infinity(),
                                      -std::numeric_limits<float>::infinity(),
                                      std::numeric_limits<float>::quiet_NaN(),
                                      std::numeric_limits<float>::denorm_min(),
                                      -std::numeric_limits<float>::denorm_min(),
                                      std::numeric_limits<float>::max(),
                                      std::numeric_limits<float>::lowest(),
                                      std::numeric_limits<float>::min()};
  std::vector<float> values;
  for (float x : special)
    if (std::isnan(x) || (x >= f.low && x <= f.high)) values.push_back(x);
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 16411) {
    const auto pattern = static_cast<uint32_t>(bits);
    float x;
    std::memcpy(&x, &pattern, 4);
    if (x >= f.low && x <= f.high) values.push_back(x);
  }
  return values;
}

double ulp_distance(float got, long double want) {
  const auto rounded = static_cast<float>(want);
  if (std::isnan(got) || std::isnan(rounded)) return std::isnan(got) == std::isnan(rounded) ? 0 : 1e30;
  if (std::isinf(got) || std::isinf(rounded)) {
    if (got == rounded) return 0;
    const float large = std::isinf(got) ? rounded : got;  // one step from the largest number to infinity
    return std::fabs(large) >= std::numeric_limits<float>::max() ? 1 : 1e30;
  }
  int exponent = 0;
  std::frexp(rounded, &exponent);
  const long double unit = std::ldexp(1.0L, std::max(exponent - 24, -149));
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / unit);
}

class Math : public testing::TestWithParam<std::tuple<Function, TargetInfo>> {};

TEST_P(Math, stays_within_its_ulps) {
  const auto& [f, target] = GetParam();
  const std::vector<float> x = samples(f);
  const auto n = static_cast<int64_t>(x.size());
  const std::string shape = "[" + std::to_string(n) + "]";
  const Case c{.name = f.name,
               .region = "region\nparam input f32" + shape + "\nparam output f32" + shape + "\nstage map\n  domain " +
                         shape + "\n  read param 0 at [a0]\n  output param 1 f32" + shape +
                         " at [a0] = " + (f.text.empty() ? f.name + "(r0)" : f.text) + "\n"};
  const KernelSpec spec = spec_of(c, target);
  const LinkedCode code = generate({spec}, target, {});
  const LoadedCode loaded(code);
  std::vector<float> y(x.size());
  void* pointers[] = {const_cast<float*>(x.data()), y.data()};
  const int64_t parts = code.kernels[0].parts.value();
  for (int64_t p = 0; p < parts; ++p) loaded.at(code.kernels[0].offset)(pointers, nullptr, nullptr, p, parts);
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
    {"sin", [](long double x) { return std::sin(x); }, 1, -1e6f, 1e6f},
    {"cos", [](long double x) { return std::cos(x); }, 1, -1e6f, 1e6f},
    {"tan", [](long double x) { return std::tan(x); }, 1, -1e6f, 1e6f},
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
