// Resizes of open axes: positions computed where others are read from tables, at sizes that divide and that do not.
#include "ops/resize.hpp"
#include "region/lower_support.hpp"

namespace opfuse::testing_region {
namespace {

Value* scales(Net& net, const std::vector<double>& values) {
  return net.graph.add_constant(Tensor::of<double>(DType::f32, {static_cast<int64_t>(values.size())}, values));
}

void expect_resizes(const AttrMap& attrs, double scale, int64_t h, int64_t w) {
  Net net;
  Value* x = net.input({1, 2, Dim::symbol("h"), Dim::symbol("w")});
  expect_lowers(net, net("resize", {x, nullptr, scales(net, {1, 1, scale, 2})}, attrs), 1e-9, {{"h", h}, {"w", w}});
}

TEST(OpenResize, InEveryModeAndSpelling) {
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* form : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"})
      expect_resizes({{"mode", std::string(mode)}, {"coordinate_transformation_mode", std::string(form)}}, 1.5, 5, 4);
}

TEST(OpenResize, RoundsAsItIsTold) {
  for (const char* rounding : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
    for (double scale : {0.5, 1.25, 3.0}) expect_resizes({{"nearest_mode", std::string(rounding)}}, scale, 6, 1);
}

TEST(OpenResize, ToTheSizeOfAnotherValue) {
  Net net;
  Value* x = net.input({1, 2, Dim::symbol("h"), 4});
  Value* like = net.input({1, 2, Dim::symbol("k"), 4});
  Value* y = net("resize", {x, nullptr, nullptr, net("shape", {like})}, {{"mode", std::string("linear")}});
  expect_lowers(net, y, 1e-9, {{"h", 3}, {"k", 7}});
}

TEST(OpenResize, NotWhereTapsDependOnTheExtent) {
  Net net;
  Value* x = net.input({1, 2, Dim::symbol("h"), 4});
  Value* y =
      net("resize", {x, nullptr, scales(net, {1, 1, 0.5, 1})}, {{"mode", std::string("linear")}, {"antialias", true}});
  const auto lowered = lower_group(*net.fuse({y}));
  ASSERT_TRUE(std::holds_alternative<Decline>(lowered));
  EXPECT_NE(std::get<Decline>(lowered).message.find("antialias"), std::string::npos);
}

}  // namespace
}  // namespace opfuse::testing_region
