// Resize: each coordinate mode on values worked out by hand, extents, and what is refused.
#include "ops/resize.hpp"

#include "ops/sample_tensors.hpp"

namespace opfuse {
namespace {

Tensor resize(const AttrMap& attrs, const Tensor& x, const std::vector<double>& scales) {
  return run_checked("resize", attrs, {x, absent(), f32({static_cast<int64_t>(scales.size())}, scales)});
}

Tensor resize_to(const AttrMap& attrs, const Tensor& x, const Ints& sizes) {
  return run_checked("resize", attrs, {x, absent(), absent(), i64({static_cast<int64_t>(sizes.size())}, sizes)});
}

AttrMap mode(const char* coordinates, const char* kind, const char* nearest = "round_prefer_floor") {
  return {{"coordinate_transformation_mode", coordinates}, {"mode", kind}, {"nearest_mode", nearest}};
}

TEST(Resize, InterpolatesInEveryCoordinateMode) {
  const Tensor x = f64({4}, {0, 10, 20, 30});
  expect_values(resize(mode("half_pixel", "linear"), x, {2}), {8}, {0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30});
  expect_values(resize(mode("pytorch_half_pixel", "linear"), x, {0.5}), {2}, {5, 25});
  expect_values(resize_to(mode("pytorch_half_pixel", "linear"), x, {1}), {1}, {0});
  expect_values(resize_to(mode("half_pixel", "linear"), x, {1}), {1}, {15});
  expect_values(resize_to(mode("align_corners", "linear"), x, {7}), {7}, {0, 5, 10, 15, 20, 25, 30});
  expect_values(resize_to(mode("align_corners", "linear"), x, {1}), {1}, {0});
  expect_values(resize(mode("asymmetric", "linear"), x, {2}), {8}, {0, 5, 10, 15, 20, 25, 30, 30});
  // 4 * 0.65 = 2.6 pixels, of which 2 are made: centred instead of cut at the end.
  const double scale = static_cast<float>(0.65), offset = 2 * (1 - 2 / (4 * scale));
  expect_values(resize(mode("half_pixel_symmetric", "linear"), x, {0.65}), {2},
                {10 * (offset + 0.5 / scale - 0.5), 10 * (offset + 1.5 / scale - 0.5)});
}

TEST(Resize, CropsToTheRegion) {
  const Tensor x = f64({5}, {0, 10, 20, 30, 40});
  const AttrMap attrs = {
      {"coordinate_transformation_mode", "tf_crop_and_resize"}, {"mode", "linear"}, {"extrapolation_value", -1.0}};
  const auto crop = [&](double from, double to, int64_t size) {
    return run_checked("resize", attrs, {x, f32({2}, {from, to}), absent(), i64({1}, {size})});
  };
  expect_values(crop(0.25, 0.75, 3), {3}, {10, 20, 30});
  expect_values(crop(0.5, 1.5, 3), {3}, {20, 40, -1});
  expect_values(crop(0.5, 0.5, 1), {1}, {20});
  AttrMap nearest = attrs;
  nearest[1].second = "nearest";
  expect_values(run_checked("resize", nearest, {x, f32({2}, {-0.5, 0.5}), absent(), i64({1}, {3})}), {3}, {-1, 0, 20});
}

/// A fraction beside integers is what a cast makes of it.
TEST(Resize, ExtrapolatesIntegersByWhatACastMakesOfTheValue) {
  const auto outside = [](const Tensor& x, const char* kind, double value) {
    const AttrMap attrs = {
        {"coordinate_transformation_mode", "tf_crop_and_resize"}, {"mode", kind}, {"extrapolation_value", value}};
    return run_checked("resize", attrs, {x, f32({2}, {0.5, 1.5}), absent(), i64({1}, {3})}).integer(2);
  };
  for (const char* kind : {"nearest", "linear"}) {
    EXPECT_EQ(outside(i64({5}, {0, 10, 20, 30, 40}), kind, 7.6), 7);
    EXPECT_EQ(outside(i64({5}, {0, 10, 20, 30, 40}), kind, -2.5), -2);
    EXPECT_EQ(outside(Tensor(DType::u8, {5}), kind, -2.5), 0);
    EXPECT_EQ(outside(Tensor(DType::u8, {5}), kind, 300.0), 255);
  }
}

TEST(Resize, RoundsToTheNearestAsAsked) {
  const Tensor x = f64({4}, {0, 1, 2, 3});
  // asymmetric, scale 2: positions 0, 0.5, 1, 1.5, ...
  expect_values(resize(mode("asymmetric", "nearest", "round_prefer_floor"), x, {2}), {8}, {0, 0, 1, 1, 2, 2, 3, 3});
  expect_values(resize(mode("asymmetric", "nearest", "round_prefer_ceil"), x, {2}), {8}, {0, 1, 1, 2, 2, 3, 3, 3});
  expect_values(resize(mode("asymmetric", "nearest", "floor"), x, {2}), {8}, {0, 0, 1, 1, 2, 2, 3, 3});
  expect_values(resize(mode("asymmetric", "nearest", "ceil"), x, {2}), {8}, {0, 1, 1, 2, 2, 3, 3, 3});
  expect_values(resize(mode("half_pixel", "nearest", "floor"), x, {0.5}), {2}, {0, 2});
  expect_values(resize(mode("tf_half_pixel_for_nn", "nearest", "floor"), x, {0.5}), {2}, {1, 3});
}

TEST(Resize, IsSeparableAndKeepsOtherAxes) {
  const Tensor x = random_tensor({2, 3, 4, 5}, 1);
  const Tensor both = resize(mode("half_pixel", "linear"), x, {1, 1, 2, 3});
  const Tensor rows = resize(mode("half_pixel", "linear"), x, {1, 1, 2, 1});
  expect_close(both, resize(mode("half_pixel", "linear"), rows, {1, 1, 1, 3}));
  AttrMap axes = mode("half_pixel", "linear");
  axes.push_back({"axes", Ints{3, -2}});
  expect_close(resize(axes, x, {3, 2}), both);
}

TEST(Resize, KeepsTheAspectRatio) {
  const Tensor x = ramp({1, 1, 2, 4});
  const auto to = [&](const char* policy) {
    return resize_to({{"keep_aspect_ratio_policy", policy}, {"axes", Ints{2, 3}}}, x, {7, 8}).sizes();
  };
  EXPECT_EQ(to("stretch"), (Ints{1, 1, 7, 8}));
  EXPECT_EQ(to("not_larger"), (Ints{1, 1, 4, 8}));
  EXPECT_EQ(to("not_smaller"), (Ints{1, 1, 7, 14}));
}

TEST(Resize, RoundsExtentsInSinglePrecision) {
  // 0.7f is below 0.7; engines multiply in single precision, where 10 * 0.7f is 7.
  EXPECT_EQ(resize({}, ramp({10}), {0.7}).sizes(), Ints{7});
}

TEST(Resize, ScalesSymbolicExtents) {
  const std::vector<std::string> types = {"f32[n,3,h,w]"};
  const Dim h = Dim::symbol("h"), w = Dim::symbol("w");
  const AttrMap doubled = {{"scales", std::vector<double>{1, 1, 2, 0.5}}};
  EXPECT_EQ(inferred("resize", doubled, types),
            TensorType({DType::f32, Shape{Dim::symbol("n"), 3, h * Dim(2), floor_div(w, 2)}}).text());
  EXPECT_EQ(inferred("resize", {}, {"f32[n,3,h,w]", "", "", "i64[4]"}, {{3, {Dim::symbol("n"), 3, h, Dim(7)}}}),
            "f32[n,3,h,7]");
  EXPECT_EQ(inference_error("resize", {{"scales", std::vector<double>{1, 1, 1.3, 1}}}, types), "unknown_dimension");
}

/// Values of ONNX's reference evaluator.
TEST(Resize, CubicAndAntialiasedFollowTheReference) {
  const Tensor x = f64({4}, {1, 4, 2, 8});
  AttrMap cubic = mode("half_pixel", "cubic");
  expect_values(resize(cubic, x, {2}), {8},
                {0.68359375, 1.75, 3.53125, 3.65234375, 1.92578125, 3.1484375, 6.5703125, 8.6328125});
  AttrMap antialiased = cubic;
  antialiased.emplace_back("antialias", true);
  expect_values(resize(antialiased, x, {0.5}), {2}, {1.95703125, 5.33203125});
  AttrMap linear = mode("half_pixel", "linear");
  linear.emplace_back("antialias", true);
  expect_values(resize(linear, x, {0.5}), {2}, {2.25, 5.25});
  cubic.emplace_back("exclude_outside", true);
  cubic.emplace_back("cubic_coeff_a", -0.5);
  const Tensor y = resize(cubic, x, {2});
  EXPECT_NEAR(y.real(0), 25.0 / 34, 1e-12);  // of the weights -0.0234, 0.2266, 0.8672, -0.0703 the last two are inside
  EXPECT_NEAR(y.real(3), 3.6640625, 1e-12);
}

TEST(Resize, RefusesImpossibleExtents) {
  EXPECT_EQ(inference_error("resize", {{"scales", std::vector<double>{-1}}}, {"f32[4]"}), "bad_attribute");
  EXPECT_EQ(inference_error("resize", {{"scales", std::vector<double>{1e30}}}, {"f32[4]"}), "bad_attribute");
  EXPECT_EQ(inference_error("resize", {{"scales", std::vector<double>{1, 2}}}, {"f32[4]"}), "shape_mismatch");
  EXPECT_EQ(inference_error("resize", {}, {"f32[4]"}), "arity_mismatch");
  EXPECT_EQ(error_of([] { resize_to({}, f64({0}, {}), {3}); }), "bad_dimension");
  EXPECT_EQ(error_of([] {
              resize_to({{"coordinate_transformation_mode", "tf_crop_and_resize"}}, ramp({4}), {3});
            }),
            "arity_mismatch");
}

}  // namespace
}  // namespace opfuse
