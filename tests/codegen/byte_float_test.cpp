// Storage types in kernels: every code to a number, numbers around every code back, and bits as they are.
#include <fmt/format.h>

#include <cmath>

#include "codegen/run_kernel.hpp"
#include "tensor/number.hpp"
#include "tensor/small_float.hpp"

namespace opfuse::test {
namespace {

std::string region(const std::string& from, const std::string& to, int64_t count, const std::string& value) {
  return fmt::format(
      "region\nparam input {0}[{2}]\nparam output {1}[{2}]\nstage map\n  domain [{2}]\n  read param 0 at [a0]\n"
      "  output param 1 {1}[{2}] at [a0] = {3}\n",
      from, to, count, value);
}

/// All codes, more than a whole number of vectors of them.
Case decoded(DType dtype) {
  const int count = (1 << bit_size(dtype)) + 5;
  Tensor codes(dtype, {count});
  for (int i = 0; i < count; ++i) {
    const int code = i % (1 << bit_size(dtype));
    static_cast<int8_t*>(codes.mutable_data())[i] =
        static_cast<int8_t>(is_integer(dtype) ? wrap_to(dtype, code) : code);
  }
  const std::string name(name_of(dtype));
  return {.name = name + "_to_f32",
          .region = region(name, "f32", count, fmt::format("cast<f32>(r0:{})", name)),
          .tolerance = 0,
          .operands = {codes}};
}

std::vector<double> around(DType dtype) {
  std::vector<double> values = {NAN, HUGE_VAL, -HUGE_VAL, 0.0, -0.0, 1e-30, -1e-30, 1e30, -1e30, 464, 465, 61440};
  for (int code = 0; code < 1 << (bit_size(dtype) - 1); ++code) {
    const double v = is_float(dtype) ? from_byte_float(dtype, static_cast<uint8_t>(code)) : code;
    const double next = is_float(dtype) ? from_byte_float(dtype, static_cast<uint8_t>(code + 1)) : code + 1;
    for (double x : {v, (v + next) / 2, v * 1.001, -v * 0.999, -v * 1.0625})
      if (std::isfinite(x)) values.push_back(x);
  }
  return values;
}

Case encoded(DType dtype, DType from) {
  const std::vector<double> values = around(dtype);
  Tensor x(from, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) x.set_real(static_cast<int64_t>(i), values[i]);
  const std::string name(name_of(dtype)), given(name_of(from));
  return {.name = given + "_to_" + name,
          .region = region(given, name, x.elements(), fmt::format("cast<{}>(r0:{})", name, given)),
          .tolerance = 0,
          .operands = {x}};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (DType dtype : {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f8e8m0,
                      DType::f4e2m1, DType::i4, DType::u4, DType::i2, DType::u2}) {
    all.push_back(decoded(dtype));
    all.push_back(encoded(dtype, DType::f32));
  }
  all.push_back(encoded(DType::f8e4m3fn, DType::f16));
  all.push_back(
      {.name = "i32_wraps_to_i4", .region = region("i32", "i4", 37, "cast<i4>(r0:i32)"), .low = -99, .high = 99});
  all.push_back({.name = "u8_wraps_to_u2", .region = region("u8", "u2", 37, "cast<u2>(r0:u8)"), .low = 0, .high = 255});
  all.push_back({.name = "f32_to_tf32", .region = region("f32", "tf32", 300, "cast<tf32>(r0)"), .tolerance = 0});
  all.push_back({.name = "bits_of_f32", .region = region("f32", "i32", 37, "bit_cast<i32>(r0)")});
  all.push_back({.name = "f16_of_bits", .region = region("f16", "u16", 37, "bit_cast<u16>(r0:f16)")});
  all.push_back({.name = "f64_of_bits", .region = region("i64", "f64", 19, "bit_cast<f64>(r0:i64)"), .high = 99});
  all.push_back({.name = "f8_of_bits", .region = region("u8", "f8e5m2", 256, "bit_cast<f8e5m2>(r0:u8)"), .high = 100});
  all.push_back({.name = "i4_of_bits", .region = region("u4", "i4", 64, "bit_cast<i4>(r0:u4)"), .low = 0, .high = 15});
  return all;
}
OPFUSE_CASES(StorageTypes, cases());

}  // namespace
}  // namespace opfuse::test
