// Group norm as exporters spell it is one launch, between convolutions too.
#include "driver/runs_everywhere.hpp"

namespace opfuse {
namespace {

TEST(GroupNorm, OfOneGroupIsOneLaunchWhereConvolutionsKeepTheirBlocks) {
  for (const char* shape : {"2,20,7,5", "1,32,6,6"}) {
    std::string text = R"(graph (%x: f32[SHAPE]) {
      %w = const rand<1> : f32[CHANNELS,CHANNELS,1,1]
      %s = const splat<1> : f32[1]
      %b = const splat<0> : f32[1]
      %g = const rand<2> : f32[CHANNELS,1,1]
      %h = const rand<3> : f32[CHANNELS,1,1]
      %to = const dense<IMAGES,1,-1> : i64[3]
      %back = const dense<SHAPE> : i64[4]
      %c = conv(%x, %w)
      %r = reshape(%c, %to)
      %n = instance_norm(%r, %s, %b)
      %j = reshape(%n, %back)
      %m = mul(%j, %g)
      %a = add(%m, %h)
      %y = conv(%a, %w)
      return %y
    })";
    const std::string sizes = shape;
    const auto fill = [&](const std::string& name, const std::string& value) {
      for (size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), value);
    };
    fill("SHAPE", sizes);
    fill("IMAGES", sizes.substr(0, 1));
    fill("CHANNELS", sizes.substr(2, 2));
    EXPECT_EQ(test::expect_runs(text).launches.size(), 3u);
  }
}

}  // namespace
}  // namespace opfuse
