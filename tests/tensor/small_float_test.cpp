// Floats of a byte and less, integers of four and two bits.
#include "tensor/small_float.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/number.hpp"
#include "tensor/tensor.hpp"
#include "tensor/tf32.hpp"

namespace opfuse {
namespace {

constexpr DType kFormats[] = {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f4e2m1};

TEST(SmallFloat, EveryCodeSurvives) {
  for (DType dtype :
       {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f4e2m1, DType::f8e8m0})
    for (int code = 0; code < 1 << bit_size(dtype); ++code) {
      const double value = from_byte_float(dtype, static_cast<uint8_t>(code));
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(from_byte_float(dtype, to_byte_float(dtype, value)))) << name_of(dtype) << code;
      else
        EXPECT_EQ(to_byte_float(dtype, value), code) << name_of(dtype) << " " << value;
    }
}

TEST(SmallFloat, KnowsItsBorders) {
  EXPECT_EQ(greatest_of(DType::f8e4m3fn), 448);
  EXPECT_EQ(greatest_of(DType::f8e4m3fnuz), 240);
  EXPECT_EQ(greatest_of(DType::f8e5m2), 57344);
  EXPECT_EQ(greatest_of(DType::f8e5m2fnuz), 57344);
  EXPECT_EQ(greatest_of(DType::f4e2m1), 6);
  EXPECT_EQ(from_byte_float(DType::f8e4m3fn, 1), 0x1p-9);
  EXPECT_EQ(from_byte_float(DType::f8e5m2, 1), 0x1p-16);
  EXPECT_EQ(from_byte_float(DType::f8e8m0, 0), 0x1p-127);
}

/// Halfway between two neighbours the larger size is taken, once.
TEST(Tf32, RoundsHalfwayAwayFromZero) {
  EXPECT_EQ(round_to(kTf32, 0x1.002p0), 0x1.004p0);
  EXPECT_EQ(round_to(kTf32, -0x1.006p0), -0x1.008p0);
  EXPECT_EQ(round_to(kTf32, 0x1.001ffffffffffp0), 1);
  EXPECT_EQ(round_to(kTf32, 0x1.ffep127), HUGE_VAL);
  EXPECT_EQ(round_to(kTf32, 0x1p-137), 0x1p-136);
  EXPECT_EQ(round_to(kTf32, greatest_of(kTf32)), greatest_of(kTf32));
  EXPECT_TRUE(std::isnan(round_to(kTf32, NAN)));
  EXPECT_EQ(Tensor::scalar(DType::f32, 0x1.002p0).cast(kTf32).real(0), 0x1.004p0);
  EXPECT_EQ(parse_dtype("tf32"), kTf32);
}

/// Halfway between two neighbours the even code is taken, beside it the nearer one.
TEST(SmallFloat, RoundsToNearestEven) {
  for (DType dtype : kFormats)
    for (int code = 0; code < small_format(dtype).greatest; ++code) {
      const double low = from_byte_float(dtype, static_cast<uint8_t>(code));
      const double high = from_byte_float(dtype, static_cast<uint8_t>(code + 1)), middle = (low + high) / 2;
      EXPECT_EQ(to_byte_float(dtype, middle), code + (code & 1)) << name_of(dtype) << " " << middle;
      EXPECT_EQ(to_byte_float(dtype, std::nextafter(middle, 0)), code) << name_of(dtype) << " " << middle;
      EXPECT_EQ(to_byte_float(dtype, std::nextafter(middle, 1e9)), code + 1) << name_of(dtype) << " " << middle;
    }
}

TEST(SmallFloat, OverflowsAsItsFormatSays) {
  EXPECT_EQ(round_to(DType::f8e5m2, 61439), 57344);
  EXPECT_EQ(round_to(DType::f8e5m2, 61440), HUGE_VAL);
  EXPECT_EQ(round_to(DType::f8e4m3fn, 464), 448);
  EXPECT_TRUE(std::isnan(round_to(DType::f8e4m3fn, 465)));
  EXPECT_TRUE(std::isnan(round_to(DType::f8e4m3fnuz, HUGE_VAL)));
  EXPECT_EQ(round_to(DType::f4e2m1, -1e9), -6);
  EXPECT_FALSE(std::signbit(round_to(DType::f8e5m2fnuz, -0.0)));
  EXPECT_EQ(round_to(DType::f8e8m0, 3.1), 4);
  EXPECT_EQ(round_to(DType::f8e8m0, -2), 2);
}

TEST(SmallInteger, SaturatesAndWraps) {
  EXPECT_EQ(truncate_to(DType::i4, -99), -8);
  EXPECT_EQ(truncate_to(DType::u2, 99), 3);
  EXPECT_EQ(wrap_to(DType::i4, 8), -8);
  EXPECT_EQ(wrap_to(DType::u4, -1), 15);
  EXPECT_EQ(wrap_to(DType::i2, 3), -1);
  Tensor t(DType::i2, {3});
  for (int i = 0; i < 3; ++i) t.set_integer(i, 2 * i - 3);
  EXPECT_EQ(t.to_i64(), (std::vector<int64_t>{-2, -1, 1}));
  EXPECT_EQ(t.cast(DType::u4).to_i64(), (std::vector<int64_t>{14, 15, 1}));
}

}  // namespace
}  // namespace opfuse
