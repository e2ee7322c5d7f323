// F(m,3) computes the 3-tap filter; filters are transformed when they are packed.
#include "tensor/winograd.hpp"

#include <gtest/gtest.h>

#include "base/fail.hpp"
#include "tensor/layout.hpp"

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

}  // namespace
}  // namespace opfuse
