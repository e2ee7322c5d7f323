// One expression of one float: a kernel of it over floats of the whole range, and distances from what is right.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "codegen/run_kernel.hpp"
#include "cpu/activation_form.hpp"

namespace opfuse::test {

/// Every 16411th float pattern of the range, and the special ones.
inline std::vector<float> float_samples(float low, float high) {
  using Limits = std::numeric_limits<float>;
  std::vector<float> values;
  for (float x : {0.0F, 1.0F, Limits::infinity(), Limits::denorm_min(), Limits::max(), Limits::min()})
    for (float signed_x : {x, -x})
      if (signed_x >= low && signed_x <= high) values.push_back(signed_x);
  values.push_back(Limits::quiet_NaN());
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 16411) {
    const auto pattern = static_cast<uint32_t>(bits);
    float x;
    std::memcpy(&x, &pattern, 4);
    if (x >= low && x <= high) values.push_back(x);
  }
  return values;
}

inline double ulp_distance(float got, long double want) {
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

/// y[i] = text of x[i] as r0.
inline Case elementwise(const std::string& name, const std::string& text, size_t n, const std::string& dtype = "f32") {
  const std::string type = dtype + "[" + std::to_string(n) + "]";
  return {.name = name,
          .region = "region\nparam input " + type + "\nparam output " + type + "\nstage map\n  domain [" +
                    std::to_string(n) + "]\n  read param 0 at [a0]\n  output param 1 " + type + " at [a0] = " + text +
                    "\n"};
}

/// As with --exact.
inline void without_tables(KernelSpec& spec) {
  std::erase_if(spec.schedule.knobs, [](const auto& knob) { return knob.first == kActivationTables; });
}

/// Real: float or double, as in the region.
template <class Real>
std::vector<Real> run_elementwise(const KernelSpec& spec, const TargetInfo& target, const std::vector<Real>& x) {
  const LinkedCode code = generate({spec}, target, {});
  const LoadedCode loaded(code);
  std::vector<Real> y(x.size());
  void* pointers[] = {const_cast<Real*>(x.data()), y.data()};
  const int64_t parts = code.kernels[0].parts.value();
  for (int64_t p = 0; p < parts; ++p) loaded.at(code.kernels[0].offset)(pointers, nullptr, nullptr, p, parts);
  return y;
}

}  // namespace opfuse::test
