// Tensors of all types: half precision to the bit, saturation, casts, sharing, differences.
#include "tensor/tensor.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/fail.hpp"
#include "tensor/number.hpp"

namespace opfuse {
namespace {

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.diagnostic().name;
  }
  return "";
}

TEST(Half, EveryBitPatternSurvives) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const uint16_t h = static_cast<uint16_t>(bits);
    const float f = from_half(h);
    if (std::isnan(f))
      EXPECT_TRUE(std::isnan(from_half(to_half(f)))) << bits;
    else
      EXPECT_EQ(to_half(f), h) << bits;
    const float b = from_bfloat16(h);
    if (std::isnan(b))
      EXPECT_TRUE(std::isnan(from_bfloat16(to_bfloat16(b)))) << bits;
    else
      EXPECT_EQ(to_bfloat16(b), h) << bits;
  }
}

/// The midpoint of two neighbours goes to the even one, anything beside it to the nearer one.
TEST(Half, RoundsToNearestEven) {
  for (uint16_t h = 0; h < 0x7bff; ++h) {
    const double low = from_half(h), high = from_half(static_cast<uint16_t>(h + 1));
    const float middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(static_cast<double>(middle), (low + high) / 2);
    const uint16_t even = (h & 1) ? static_cast<uint16_t>(h + 1) : h;
    EXPECT_EQ(to_half(middle), even) << h;
    EXPECT_EQ(to_half(std::nextafter(middle, 0.0f)), h) << h;
    EXPECT_EQ(to_half(std::nextafter(middle, 1e9f)), h + 1) << h;
    EXPECT_EQ(to_half(-middle), even | 0x8000) << h;
  }
  EXPECT_EQ(to_half(65519.996f), 0x7bff);
  EXPECT_EQ(to_half(65520.0f), 0x7c00);
  EXPECT_EQ(to_half(std::numeric_limits<float>::infinity()), 0x7c00);
}

TEST(Half, DoublesRoundOnce) {
  // Just above the midpoint of two halves: through float it would land on the midpoint and round down.
  const double value = 1.0 + 0x1p-11 + 0x1p-40;
  Tensor t(DType::f16, {1});
  t.set_real(0, value);
  EXPECT_EQ(t.real(0), 1.0 + 0x1p-10);
  t = Tensor::scalar(DType::bf16, 1.0 + 0x1p-8 + 0x1p-40);
  EXPECT_EQ(t.real(0), 1.0 + 0x1p-7);
}

TEST(Tensor, IntegersSaturateAndRoundWhenStored) {
  Tensor t(DType::i8, {4});
  t.set_real(0, 300), t.set_real(1, -300), t.set_real(2, 2.5), t.set_real(3, std::nan(""));
  EXPECT_EQ(t.to_i64(), (std::vector<int64_t>{127, -128, 2, 0}));
  Tensor u(DType::u64, {2});
  u.set_real(0, 1e30), u.set_real(1, -1);
  EXPECT_EQ(u.view<uint64_t>()[0], UINT64_MAX);
  EXPECT_EQ(u.view<uint64_t>()[1], 0u);
}

TEST(Tensor, CastTruncatesFloatsAndWrapsIntegers) {
  const Tensor f = Tensor::of<double>(DType::f32, {4}, {2.9, -2.9, 1e20, -1e20});
  EXPECT_EQ(f.cast(DType::i32).to_i64(), (std::vector<int64_t>{2, -2, INT32_MAX, INT32_MIN}));
  EXPECT_EQ(Tensor::from_i64({300, -1}).cast(DType::u8).to_i64(), (std::vector<int64_t>{44, 255}));
  EXPECT_EQ(f.cast(DType::boolean).to_i64(), (std::vector<int64_t>{1, 1, 1, 1}));
}

TEST(Tensor, RefusesImpossibleShapes) {
  EXPECT_EQ(error_of([] { Tensor(DType::f32, {-1}); }), "bad_dimension");
  EXPECT_EQ(error_of([] { Tensor(DType::f32, {INT64_MAX, 2}); }), "bad_dimension");
  EXPECT_EQ(error_of([] { Tensor(DType::f64, {INT64_MAX / 4}); }), "bad_dimension");
  EXPECT_EQ(error_of([] { Tensor::from_i64({1, 2}).reshaped({3}); }), "shape_mismatch");
  EXPECT_EQ(Tensor(DType::f32, {INT64_MAX, 0, 5}).elements(), 0);
}

TEST(Tensor, CopiesShareStorageAndClonesDoNot) {
  Tensor a = Tensor::from_i64({1, 2});
  Tensor b = a, c = a.clone();
  EXPECT_EQ(a.data(), b.data());
  EXPECT_NE(a.data(), c.data());
  EXPECT_TRUE(a.same_bits(c));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 64, 0u);
}

TEST(Difference, CountsNaNAndInfinityAsFar) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Tensor want = Tensor::of<double>(DType::f64, {4}, {1, inf, nan, 2});
  EXPECT_EQ(difference(want, want).max_abs, 0);
  EXPECT_EQ(difference(Tensor::of<double>(DType::f64, {4}, {1, inf, 3, 2}), want).max_abs, inf);
  const Difference d = difference(Tensor::of<double>(DType::f64, {4}, {1, inf, nan, 2.5}), want);
  EXPECT_EQ(d.max_abs, 0.5);
  EXPECT_EQ(d.at, 3);
  EXPECT_EQ(d.max_reference, 2);
  EXPECT_EQ(error_of([&] { difference(Tensor(DType::f64, {3}), want); }), "shape_mismatch");
}

TEST(TensorType, PrintsAndParses) {
  for (const char* text : {"f32[1,3,h,w]", "i64[]", "bool[*]", "f16[min(a, b),(n + 1) / 2]", "string[\"a,]b\"]"}) {
    EXPECT_EQ(parse_type(text).text(), text);
  }
  for (const char* bad : {"", "f32", "f33[1]", "f32[1", "f32[1,]", "f32[,]", "f32[1]]"}) {
    EXPECT_EQ(error_of([&] { parse_type(bad); }), "bad_text") << bad;
  }
}

RC_GTEST_PROP(Number, RoundToHalfIsTheNearest, (int32_t mantissa)) {
  const double value = mantissa * std::exp2(*rc::gen::inRange(-56, -15));
  const double rounded = round_to(DType::f16, value);
  const uint16_t bits = to_half(static_cast<float>(rounded));
  for (int step : {-1, 1}) {
    const double other = from_half(static_cast<uint16_t>(bits + step));
    if (std::isfinite(other)) RC_ASSERT(std::fabs(rounded - value) <= std::fabs(other - value));
  }
}

}  // namespace
}  // namespace opfuse
