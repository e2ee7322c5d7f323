// F(m,3) computes the 3-tap filter; filters are transformed when they are packed.
#include "tensor/winograd.hpp"

#include <gtest/gtest.h>

#include "base/fail.hpp"
#include "tensor/layout.hpp"
#include "tensor/winograd_codes.hpp"

namespace opfuse {
namespace {

using winograd::Matrix;

std::vector<double> times(const Matrix& m, const std::vector<double>& x) {
  std::vector<double> y;
  for (const auto& row : m) {
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += row[i] * x[i];
    y.push_back(sum);
  }
  return y;
}

class Filtering : public testing::TestWithParam<int64_t> {};

TEST_P(Filtering, is_the_three_tap_filter) {
  const int64_t tile = GetParam();
  const std::vector<double> g = {0.5, -1.25, 3};
  std::vector<double> d;
  for (int64_t i = 0; i < winograd::points(tile); ++i) d.push_back(static_cast<double>(i * i % 7) - 2.5);
  std::vector<double> product = times(winograd::filter_matrix(tile), g);
  const std::vector<double> v = times(winograd::data_matrix(tile), d);
  for (size_t i = 0; i < product.size(); ++i) product[i] *= v[i];
  const std::vector<double> y = times(winograd::result_matrix(tile), product);
  ASSERT_EQ(y.size(), static_cast<size_t>(tile));
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], g[0] * d[i] + g[1] * d[i + 1] + g[2] * d[i + 2], 1e-12);
}

TEST_P(Filtering, has_numbers_that_fp32_holds_exactly) {
  for (const Matrix& m : {winograd::data_matrix(GetParam()), winograd::result_matrix(GetParam())})
    for (const auto& row : m)
      for (double x : row) EXPECT_EQ(x, static_cast<double>(static_cast<float>(x)));
}
INSTANTIATE_TEST_SUITE_P(Tiles, Filtering, testing::Values(2, 4));

TEST(WinogradLayout, packs_transformed_filters) {
  Tensor filters(DType::f32, {3, 2, 3, 3});
  for (int64_t i = 0; i < filters.elements(); ++i) filters.set_real(i, static_cast<double>(i % 11) - 5);
  const Layout layout = Layout::parse("f4x2:0231/0:2");
  EXPECT_EQ(layout.text(), "f4x2:0231/0:2");
  EXPECT_FALSE(layout.is_dense());
  const Tensor packed = pack(filters, layout);
  EXPECT_EQ(packed.sizes(), (std::vector<int64_t>{2, 6, 4, 2, 2}));
  EXPECT_EQ(layout.physical_elements(filters.type().shape), Dim(packed.elements()));
  const Tensor transformed = winograd::transform_filters(filters, 4, 2);
  const auto at = [&](int64_t o, int64_t c, int64_t y, int64_t x) { return ((o * 2 + c) * 6 + y) * 4 + x; };
  const auto packed_at = [&](int64_t o, int64_t c, int64_t y, int64_t x) {
    return ((((o / 2) * 6 + y) * 4 + x) * 2 + c) * 2 + o % 2;
  };
  for (int64_t o = 0; o < 3; ++o)
    for (int64_t c = 0; c < 2; ++c)
      for (int64_t y = 0; y < 6; ++y)
        for (int64_t x = 0; x < 4; ++x) ASSERT_EQ(packed.real(packed_at(o, c, y, x)), transformed.real(at(o, c, y, x)));
  EXPECT_EQ(packed.real(packed_at(3, 1, 2, 3)), 0) << "padding lanes";
}

TEST(WinogradLayout, refuses_other_tiles) {
  for (const char* text : {"f3x3:0231", "f4:0231", "f4x4", "fx:0123"}) EXPECT_THROW(Layout::parse(text), Error) << text;
}

Tensor codes_of(int64_t channels, int64_t code) {
  Tensor filters(DType::i8, {1, channels, 3, 3});
  for (int64_t i = 0; i < filters.elements(); ++i) filters.set_integer(i, code);
  return filters;
}

/// 255 * 9 * C * |w| * 2^6 below 2^31: up to 115 channels of 127, 114 of -128.
TEST(WinogradOfCodes, is_bounded_by_the_codes_themselves) {
  EXPECT_EQ(winograd::codes_bound(codes_of(115, 127), 4, 4), "");
  EXPECT_NE(winograd::codes_bound(codes_of(116, 127), 4, 4), "");
  EXPECT_EQ(winograd::codes_bound(codes_of(116, 127), 4, 2), "");
  EXPECT_EQ(winograd::codes_bound(codes_of(114, -128), 4, 4), "");
  EXPECT_NE(winograd::codes_bound(codes_of(115, -128), 4, 4), "");
  EXPECT_EQ(winograd::codes_bound(codes_of(450, -128), 4, 2), "");
  EXPECT_NE(winograd::codes_bound(codes_of(460, -128), 4, 2), "");
  EXPECT_EQ(winograd::codes_bound(codes_of(1800, -128), 2, 2), "");
  EXPECT_NE(winograd::codes_bound(codes_of(1900, -128), 2, 2), "");
  Tensor both = codes_of(200, 127);  // positive and negative codes never add up together
  for (int64_t i = 0; i < both.elements(); i += 2) both.set_integer(i, -127);
  EXPECT_EQ(winograd::codes_bound(both, 4, 4), "");
}

TEST(WinogradOfCodes, has_inverses_of_odd_numbers) {
  for (const uint32_t odd : {1U, 3U, 9U, 4294967295U}) EXPECT_EQ(odd * winograd::inverse_of(odd), 1U) << odd;
}

TEST(WinogradOfCodes, packs_pairs_of_channels_as_i16) {
  Tensor filters(DType::i8, {3, 5, 3, 3});
  for (int64_t i = 0; i < filters.elements(); ++i) filters.set_integer(i, i * 37 % 256 - 128);
  const Layout layout = Layout::parse("f4x2:0231/0:2,1:2");
  ASSERT_TRUE(winograd::holds_codes(layout));
  EXPECT_FALSE(winograd::holds_codes(Layout::parse("f4x2:0231/0:2")));
  const Tensor packed = pack(filters, layout);
  EXPECT_EQ(packed.dtype(), DType::i8);
  EXPECT_EQ(packed.sizes(), (std::vector<int64_t>{2, 6, 4, 3, 2, 2, 2}));
  EXPECT_EQ(layout.physical_elements(filters.type().shape), Dim(packed.elements()));
  const Tensor transformed = winograd::transform_codes(filters, 4, 2);
  const auto* numbers = static_cast<const int16_t*>(packed.data());
  for (int64_t o = 0; o < 4; ++o)
    for (int64_t c = 0; c < 6; ++c)
      for (int64_t point = 0; point < 24; ++point) {
        const int64_t at = (((o / 2 * 24 + point) * 3 + c / 2) * 2 + o % 2) * 2 + c % 2;
        EXPECT_EQ(numbers[at], o < 3 && c < 5 ? transformed.integer((o * 5 + c) * 24 + point) : 0);
      }
  // the corners of the transform: 4! / 4 of the finite rows, 6 of infinity's; 2 of the other direction
  EXPECT_EQ(transformed.integer(0), filters.integer(0) * 6 * -2);
  EXPECT_EQ(transformed.integer(23), filters.integer(8) * 6 * 2);
}

}  // namespace
}  // namespace opfuse
