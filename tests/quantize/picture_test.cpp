// Pictures to arrays: Pillow's bilinear, channels, normalisation; files that are damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fail.hpp"
#include "base/limits.hpp"
#include "ops/registry.hpp"
#include "quantize/picture_samples.hpp"
#include "testing/temporary_folder.hpp"

namespace opfuse::quantization {
namespace {

Picture counted() {
  Picture p{7, 5, {}};
  for (int i = 0; i < 7 * 5 * 3; ++i) p.rgb.push_back(static_cast<uint8_t>(i * 37 % 256));
  return p;
}

std::vector<int> ints(const std::vector<uint8_t>& bytes, size_t most) {
  return {bytes.begin(), bytes.begin() + static_cast<int64_t>(std::min(most, bytes.size()))};
}

/// numpy.asarray(Image.fromarray(x).resize(..., Image.BILINEAR)), Pillow 12; it rounds between the axes too.
TEST(Picture, IsResizedAsPillowDoes) {
  const std::vector<int> smaller{104, 86,  123, 146, 123, 100, 123, 160, 142,
                                 105, 104, 141, 145, 122, 118, 141, 161, 131};
  const std::vector<int> larger{0,   37,  74,  61,  98,  135, 139, 112, 149, 216, 10,  47,  128, 75,  112,
                                116, 153, 100, 181, 218, 12,  79,  116, 89,  93,  130, 167, 154, 191, 228};
  const auto near = [](const std::vector<int>& got, const std::vector<int>& want) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1) << i;
  };
  near(ints(resized(counted(), 3, 2, PictureOptions::Fit::stretch), 99), smaller);
  near(ints(resized(counted(), 10, 6, PictureOptions::Fit::stretch), 30), larger);
  EXPECT_EQ(resized(counted(), 7, 5, PictureOptions::Fit::stretch), counted().rgb);
}

TEST(Picture, CropTakesTheMiddle) {
  Picture p{6, 2, {}};
  for (int y = 0; y < 2; ++y)
    for (int x = 0; x < 6; ++x)
      for (int c = 0; c < 3; ++c) p.rgb.push_back(static_cast<uint8_t>(10 * x));
  EXPECT_THAT(ints(resized(p, 2, 2, PictureOptions::Fit::crop), 6), testing::ElementsAre(20, 20, 20, 30, 30, 30));
}

TEST(Picture, BecomesWhatTheModelReads) {
  const Picture p{1, 1, {255, 0, 51}};
  const PictureOptions options{.mean = {0.5, 0.25, 0}, .std = {0.5, 0.5, 0.1}, .bgr = true};
  const Tensor first = picture_array(p, DType::f32, {1, 3, 1, 1}, *picture_axes(Shape{1, 3, 1, 1}), options);
  EXPECT_NEAR(first.real(0), (0.2 - 0.5) / 0.5, 1e-6);
  EXPECT_NEAR(first.real(1), -0.5, 1e-6);
  EXPECT_NEAR(first.real(2), 10, 1e-5);
  const Tensor last = picture_array(p, DType::u8, {1, 1, 3}, *picture_axes(Shape{1, 1, 3}), {});
  EXPECT_THAT(ints({last.view<uint8_t>().begin(), last.view<uint8_t>().end()}, 3), testing::ElementsAre(255, 0, 51));
  const Tensor grey = picture_array(p, DType::f32, {1, 1, 2, 2}, *picture_axes(Shape{1, 1, 2, 2}), {});
  EXPECT_NEAR(grey.real(3), 82.0 / 255, 1e-6);  // 0.299 * 255 + 0.114 * 51
}

std::string refusal(const std::string& graph, const PictureOptions& options, const std::string& path = "a.png") {
  const Graph model = parse_graph("graph (" + graph + ") { return %x }", ops());
  try {
    samples_from_pictures({path}, model, {.pictures = options}).read(0);
  } catch (const Error& error) {
    return std::string(error.what());
  }
  return "";
}

TEST(Picture, WhatDoesNotFitIsRefused) {
  EXPECT_THAT(refusal("%x: f32[1,8]", {}), testing::HasSubstr("f32[1,8]"));
  EXPECT_THAT(refusal("%x: f32[1,3,h,w]", {}), testing::HasSubstr("leaves the size of 'x' open"));
  EXPECT_THAT(refusal("%x: f32[8,3,4,4]", {}), testing::HasSubstr("batch is 8"));
  EXPECT_THAT(refusal("%x: u8[1,3,4,4]", {.mean = {0.5}}), testing::HasSubstr("u8"));
  EXPECT_THAT(refusal("%x: f32[1,3,4,4]", {.std = {1, 2}}), testing::HasSubstr("2 numbers"));
  EXPECT_THAT(refusal("%x: f32[1,3,4,4]", {.std = {0}}), testing::HasSubstr("deviation of 0"));
  EXPECT_THAT(refusal("%x: f32[1,3,4,4]", {.height = 5, .width = 5}), testing::HasSubstr("not 5"));
  const test::TemporaryFolder folder;
  EXPECT_THAT(refusal("%x: f32[1,3,4,4]", {}, folder.write("a.png", "GIF89a")),
              testing::HasSubstr("neither JPEG nor PNG"));
  EXPECT_THAT(refusal("%x: f32[1,3,4,4]", {}, folder.write("b.png", "")), testing::HasSubstr("b.png"));
  EXPECT_THAT(refusal("%x: f32[1,3,4,4]", {}, folder.write("c.jpg", "\xff\xd8\xff\xd9")), testing::HasSubstr("c.jpg"));
  EXPECT_THAT(refusal("%x: f32[1,3,4,4]", {}, folder.write("d.png", "\x89PNG\r\n\x1a\n....")),
              testing::HasSubstr("d.png"));
}

TEST(Picture, TheLimitOfPixelsHasAName) {
  const test::TemporaryFolder folder;
  // up to the pixels: 1 x 2, grey
  const std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x02\x08\0\0\0\0\xbc\xea\xe9\xfb\0\0\0\x0cIDAT",
                        41);
  const std::string path = folder.write("a.png", png);
  const Limits limits = limits_with({{"picture_pixels", 1}});
  const LimitScope scope(limits);
  EXPECT_THAT(refusal("%x: f32[1,3,4,4]", {}, path), testing::AllOf(testing::HasSubstr("1 x 2 pixels, more than 1"),
                                                                    testing::HasSubstr("--limit picture_pixels=N")));
}

}  // namespace
}  // namespace opfuse::quantization
