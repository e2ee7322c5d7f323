// Layouts: text and back, channel blocks, strides.
#include "tensor/layout.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "base/fail.hpp"

namespace opfuse {
namespace {

Tensor counting(DType dtype, std::vector<int64_t> sizes) {
  Tensor t(dtype, std::move(sizes));
  for (int64_t i = 0; i < t.elements(); ++i) t.set_integer(i, i % 100 + 1);
  return t;
}

TEST(Layout, PrintsAndParses) {
  for (const char* text : {"0123", "0231", "0123/1:16", "0123/1:16,0:32", "p3:01/1:2,0:16,1:4", ""})
    EXPECT_EQ(Layout::parse(text).text(), text);
  for (const char* bad : {"0122", "13", "0123/", "0123/4:2", "0123/1:0", "01/1", "a", "01/1:2,", "p0:01", "p:01", "p2",
                          "0123/1:99999999999999999999"}) {
    EXPECT_THROW(Layout::parse(bad), Error) << bad;
  }
}

TEST(Layout, ChannelBlocksLieInnermostWithZeroPadding) {
  const Tensor t = counting(DType::f32, {1, 3, 1, 2});
  const Tensor p = pack(t, Layout::channels_blocked(4, 1, 4));
  EXPECT_EQ(p.sizes(), (std::vector<int64_t>{1, 1, 1, 2, 4}));
  const std::vector<float> want = {1, 3, 5, 0, 2, 4, 6, 0};
  EXPECT_TRUE(std::equal(want.begin(), want.end(), p.view<float>().begin()));
}

TEST(Layout, BlocksOfTheLastAxisLieAsThoseOfTheSecond) {
  const Tensor t = counting(DType::f32, {1, 1, 2, 3});  // [N][H][W][C]
  const Layout last = Layout::channels_blocked(4, 3, 2);
  EXPECT_EQ(last.text(), "0312/3:2");
  const Tensor p = pack(t, last);
  EXPECT_EQ(p.sizes(), (std::vector<int64_t>{1, 2, 1, 2, 2}));
  const std::vector<float> want = {1, 2, 4, 5, 3, 0, 6, 0};
  EXPECT_TRUE(std::equal(want.begin(), want.end(), p.view<float>().begin()));
}

TEST(Layout, TwoBlocksNestInListOrder) {
  // OIHW -> [O/2][I/2][H][W][2i][2o]
  const Tensor t = counting(DType::f32, {2, 2, 1, 1});
  const Tensor p = pack(t, Layout{{0, 1, 2, 3}, {{1, 2}, {0, 2}}});
  const std::vector<float> want = {1, 3, 2, 4};
  EXPECT_TRUE(std::equal(want.begin(), want.end(), p.view<float>().begin()));
}

TEST(Layout, StridesFollowTheMemoryOrder) {
  const Dim h = Dim::symbol("h");
  const auto strides = dense_strides(Layout::channels_blocked(4, 1, 16), Shape{1, 20, h, 7});
  EXPECT_EQ(strides, (std::vector<Dim>{h * 224, h * 112, 112, 16, 1}));
  EXPECT_EQ(Layout::channels_blocked(4, 1, 16).physical_elements(Shape{1, 20, h, 7}), h * 224);
}

RC_GTEST_PROP(LayoutProperty, UnpackUndoesPack, ()) {
  const size_t rank = *rc::gen::inRange<size_t>(1, 5);
  Layout layout = Layout::dense(rank);
  for (size_t i = rank; i > 1; --i) std::swap(layout.order[i - 1], layout.order[*rc::gen::inRange<size_t>(0, i)]);
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < rank; ++i) sizes.push_back(*rc::gen::inRange<int64_t>(1, 9));
  const int blocks = *rc::gen::inRange(0, 4);
  for (int i = 0; i < blocks; ++i) {
    layout.blocks.push_back({static_cast<int>(*rc::gen::inRange<size_t>(0, rank)), *rc::gen::inRange<int64_t>(1, 6)});
  }
  const DType dtype = *rc::gen::element(DType::i8, DType::f16, DType::f32, DType::f64);
  RC_LOG() << layout.text();
  const Tensor t = counting(dtype, sizes);
  const Tensor p = pack(t, layout);
  RC_ASSERT(unpack(p, layout, sizes).same_bits(t));
  double sum = 0, packed = 0;
  for (int64_t i = 0; i < t.elements(); ++i) sum += t.real(i);
  for (int64_t i = 0; i < p.elements(); ++i) packed += p.real(i);
  RC_ASSERT(sum == packed);  // padding is zero
}

}  // namespace
}  // namespace opfuse
