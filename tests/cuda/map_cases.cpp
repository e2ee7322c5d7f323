// Results element by element: every type, functions, open and odd shapes, numbers from elsewhere.
#include <array>
#include <cmath>
#include <limits>

#include "cuda/case_text.hpp"

namespace opfuse::test {
namespace {

std::string map_text(const std::string& shape, const std::string& value, const std::string& dtype = "f32") {
  return fmt::format(
      "region\nparam input {2}{0}\nparam input {2}{0}\nparam output {2}{0}\nstage map\n  domain {0}\n"
      "  read param 0 at [a0, a1]\n  read param 1 at [a0, a1]\n  output param 2 {2}{0} at [a0, a1] = {1}\n",
      shape, typed(value, dtype), dtype);
}

/// y = f(x, per-channel operand) over [n, c, h, w].
std::string channel_text(const std::string& n, int c, int h, int w) {
  return fmt::format(
      "region\nparam input f32[{0},{1},{2},{3}]\nparam constant f32[{1}]\nparam output f32[{0},{1},{2},{3}]\n"
      "stage map\n  domain [{0},{1},{2},{3}]\n  read param 0 at [a0, a1, a2, a3]\n  read param 1 at [a1]\n"
      "  output param 2 f32[{0},{1},{2},{3}] at [a0, a1, a2, a3] = max(add(r0, r1), 0)\n",
      n, c, h, w);
}

std::string transposed_text(int m, int n) {
  return fmt::format(
      "region\nparam input f32[{0},{1}]\nparam output f32[{1},{0}]\nstage map\n  domain [{1},{0}]\n"
      "  read param 0 at [a1, a0]\n  output param 1 f32[{1},{0}] at [a0, a1] = mul(r0, 2)\n",
      m, n);
}

std::string pad_text() {
  return "region\nparam input f32[3,5]\nparam output f32[6,9]\nstage map\n  domain [6,9]\n"
         "  read param 0 at [a0 + -1, a1 + -3]\n  output param 1 f32[6,9] at [a0, a1] = select(in0, r0, 1.5)\n";
}

std::string gather_text() {
  return "region\nparam input f32[7,5]\nparam input i64[3]\nparam output f32[3,5]\nstage map\n  domain [3,5]\n"
         "  read param 1 at [a0]\n  read param 0 at [`mod(r0:i64, 7:i64)`, a1]\n"
         "  output param 2 f32[3,5] at [a0, a1] = r1\n";
}

/// Numbers halfway between two of tf32, beside that, the largest, denormal ones, NaN; the kernel's rounding is the
/// interpreter's.
CudaCase rounded_to_tf32() {
  std::vector<float> values;
  for (float x : {1.0f, 0x1.004p0f, 0x1.ffcp0f, 0x1.ffcp127f, 0x1p-126f, 0x1p-136f, 3.0f, 0.1f})
    for (float by : {0.0f, 0x1p-11f, 0x1.002p-11f, 0x1.ffep-12f, 0x1p-10f}) {
      values.push_back(x + x * by);
      values.push_back(-(x + x * by));
    }
  for (float x : {0.0f, -0.0f, 0x1p-137f, 0x1.8p-137f, 0x1p-149f, std::numeric_limits<float>::infinity(),
                  std::numeric_limits<float>::quiet_NaN()})
    values.push_back(x);
  const auto n = static_cast<int64_t>(values.size());
  const std::string type = fmt::format("[{}]", n);
  return {.name = "round_to_tf32",
          .region = fmt::format("region\nparam input f32{0}\nparam output tf32{0}\nstage map\n  domain {0}\n"
                                "  read param 0 at [a0]\n  output param 1 tf32{0} at [a0] = cast<tf32>(r0)\n",
                                type),
          .tolerance = 0,
          .given = {{0, Tensor::of(DType::f32, {n}, values)}}};
}

/// By constants: rounded once, infinite and signed zeros as IEEE 754 has them.
CudaCase divided_by_constants() {
  std::vector<float> values = {0.0f,
                               -0.0f,
                               0x1.fffffep127f,
                               std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()};
  for (int i = 0; i < 500; ++i)
    values.push_back(std::ldexp(1.0f + static_cast<float>(i * 16763) * 0x1p-23f, i % 160 - 80));
  const auto n = static_cast<int64_t>(values.size());
  std::string region = fmt::format("region\nparam input f32[{}]\n", n), outputs;
  const std::array<std::string, 7> results = {"div(r0, 1.4142135381698608)",
                                              "div(r0, 3)",
                                              "div(r0, 768)",
                                              "div(r0, 0.10000000149011612)",
                                              "div(r0, 0.25)",
                                              "div(r0, -7)",
                                              "select(eq(r0, 0), div(1, div(r0, 3)), 0)"};
  for (size_t i = 0; i < results.size(); ++i) {
    region += fmt::format("param output f32[{}]\n", n);
    outputs += fmt::format("  output param {} f32[{}] at [a0] = {}\n", i + 1, n, results[i]);
  }
  region += fmt::format("stage map\n  domain [{}]\n  read param 0 at [a0]\n{}", n, outputs);
  return {.name = "divided", .region = region, .tolerance = 0, .given = {{0, Tensor::of(DType::f32, {n}, values)}}};
}

}  // namespace

const std::vector<CudaCase>& map_cases() {
  static const std::vector<CudaCase> cases = {
      {"add_relu", map_text("[16,64]", "max(add(r0, r1), 0)")},
      {"odd", map_text("[3,37]", "mul(tanh(r0), exp(r1))")},
      {"one_element", map_text("[1,1]", "sub(r0, r1)")},
      {"open", map_text("[n,13]", "select(lt(r0, r1), sqrt(abs(r0)), erf(r1))"), kSizes},
      {"open_even", map_text("[n,16]", "min(max(r0, -0.5), 0.5)"), kSizes},
      {"many_functions", map_text("[5,7]", "add(add(sin(r0), cos(r1)), floor(mul(r0, 10)))")},
      with({"powers", map_text("[4,12]", "pow(r0, r1)")}, 0.1, 2),
      {"channels", channel_text("2", 6, 5, 7)},
      {"channels_open", channel_text("n", 3, 4, 4), kSizes},
      {"transposed", transposed_text(19, 33)},
      {"padded", pad_text()},
      {"gathered", gather_text()},
      {"integers", map_text("[5,9]", "add(mul(r0, r1), div(r0, r1))", "i32")},
      {"bytes", map_text("[6,16]", "add(r0, r1)", "i8")},
      {"long", map_text("[3,5]", "mod(r0, r1)", "i64")},
      {"double", map_text("[3,8]", "exp(mul(r0, r1))", "f64")},
      {"one_long", map_text("[1,1]", "add(r0, r1)", "i64")},
      {.name = "half_one", .region = map_text("[1,1]", "add(r0, r1)", "f16"), .tolerance = 2e-3},
      {.name = "bfloat_prime", .region = map_text("[7,13]", "sub(mul(r0, r1), r1)", "bf16"), .tolerance = 1e-2},
      {"double_vector", map_text("[4,6]", "mul(r0, r1)", "f64")},
      {.name = "half", .region = map_text("[8,24]", "add(mul(r0, r1), r0)", "f16"), .tolerance = 2e-3},
      {.name = "half_odd", .region = map_text("[5,7]", "exp(r0)", "f16"), .tolerance = 2e-3},
      {.name = "bfloat", .region = map_text("[8,24]", "max(add(r0, r1), 0)", "bf16"), .tolerance = 1e-2},
      rounded_to_tf32(),
      divided_by_constants(),
  };
  return cases;
}

}  // namespace opfuse::test
