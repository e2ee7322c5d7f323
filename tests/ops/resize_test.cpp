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

TEST(Resize, RefusesWhatIsNotSupported) {
  const AttrMap twice = {{"scales", std::vector<double>{2}}};
  const auto with = [&](std::pair<std::string, AttrValue> attr) {
    AttrMap attrs = twice;
    attrs.push_back(std::move(attr));
    return inference_error("resize", attrs, {"f32[4]"});
  };
  EXPECT_EQ(with({"mode", "cubic"}), "unsupported_attribute");
  EXPECT_EQ(with({"antialias", true}), "none");
  EXPECT_EQ(inference_error("resize", {{"scales", std::vector<double>{0.5}}, {"antialias", true}}, {"f32[4]"}),
            "unsupported_attribute");
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
