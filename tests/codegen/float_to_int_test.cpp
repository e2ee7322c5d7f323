// Casts of floats to integers: what the interpreter gives at the borders of every type, and no lane by itself.
#include <fmt/format.h>

#include <cmath>
#include <regex>

#include "codegen/run_kernel.hpp"

namespace opfuse::test {
namespace {

constexpr const char* kIntegers[] = {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"};

std::string cast_region(const std::string& from, const std::string& to, size_t count) {
  return fmt::format(
      "region\nparam input {0}[{2}]\nparam output {1}[{2}]\nstage map\n  domain [{2}]\n  read param 0 at [a0]\n"
      "  output param 1 {1}[{2}] at [a0] = cast<{1}>(r0:{0})\n",
      from, to, count);
}

/// Around the borders of every integer type, ties and fractions, infinities and NaN.
std::vector<double> corners() {
  std::vector<double> values = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 0.5, -0.5, 0.99, -0.99, 1.5, -1.5, 1e30, -1e30};
  for (const int bits : {7, 8, 15, 16, 31, 32, 63, 64})
    for (const double sign : {1.0, -1.0}) {
      const double edge = sign * std::ldexp(1.0, bits);
      const auto single = static_cast<float>(edge);
      for (const double v : {edge, edge - 1, edge + 1, edge - 0.5, edge + 0.5, std::nextafter(edge, 0.0),
                             static_cast<double>(std::nextafter(single, 0.0F)), edge * 0.75, edge * 0.7123456789})
        values.push_back(v);
    }
  return values;
}

Case cast_case(const std::string& from, const std::string& to) {
  const std::vector<double> values = corners();
  const DType dtype = from == "f64" ? DType::f64 : from == "f16" ? DType::f16 : DType::f32;
  Tensor x(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) x.set_real(static_cast<int64_t>(i), values[i]);
  return {.name = from + "_to_" + to, .region = cast_region(from, to, values.size()), .operands = {x}};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* from : {"f32", "f64", "f16"})
    for (const char* to : kIntegers) all.push_back(cast_case(from, to));
  return all;
}
OPFUSE_CASES(FloatToInt, cases());

TEST(FloatToInt, ConvertsWholeVectors) {
  const std::regex scalar("\\bv?cvtt?s[sd]2u?si");
  for (const char* name : {"cpu:avx512", "cpu:avx2", "cpu:baseline"})
    for (const char* to : kIntegers) {
      const TargetInfo target = parse_target(name);
      CodegenOptions options;
      options.emit_assembly = true;
      // whole vectors only: the last elements of a row may go one by one
      const LinkedCode code =
          generate({spec_of({.name = "cast", .region = cast_region("f32", to, 64)}, target)}, target, options);
      const std::string& text = code.kernels[0].assembly;
      EXPECT_FALSE(std::regex_search(text, scalar)) << name << " " << to << "\n" << text;
      EXPECT_TRUE(text.find("cvttps2") != std::string::npos) << name << " " << to << "\n" << text;
    }
}

}  // namespace
}  // namespace opfuse::test
