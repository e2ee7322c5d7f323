// The MLP of PVT-v2 and SegFormer: a depthwise convolution between its two Linears, on tokens that are an image.
#include <fmt/format.h>

#include "driver/runs_everywhere.hpp"

namespace opfuse::test {
namespace {

std::string mlp(int side, int channels) {
  const int tokens = side * side, wide = 4 * channels;
  return fmt::format(R"(graph (%x: f32[1,{0},{1}]) {{ %g = const rand<1> : f32[{1}] %h = const rand<2> : f32[{1}]
 %w = const rand<3> : f32[{1},{2}] %b = const rand<4> : f32[{2}] %k = const rand<5> : f32[{2},1,3,3] %c = const rand<6> : f32[{2}]
 %v = const rand<7> : f32[{2},{1}] %to = const dense<1,{2},{3},{3}> : i64[4] %back = const dense<1,{2},{0}> : i64[3]
 %n = layer_norm(%x, %g, %h) {{axis = -1}} %m = matmul(%n, %w) %a = add(%m, %b)
 %t = transpose(%a) {{perm = [0,2,1]}} %i = reshape(%t, %to) %d = conv(%i, %k, %c) {{group = {2}, pads = [1,1,1,1]}}
 %f = reshape(%d, %back) %u = transpose(%f) {{perm = [0,2,1]}} %e = gelu(%u) %o = matmul(%e, %v) %y = add(%o, %x) return %y }})",
                     tokens, channels, wide, side);
}

/// Norm, Linear, depthwise with GELU, Linear with the residual; the first two of the products may be a chain.
TEST(TokenImages, MlpsHaveNoTransposes) {
  for (const auto& [side, channels] : {std::pair(14, 32), {7, 20}}) {
    const Program program = expect_runs(mlp(side, channels));
    EXPECT_LE(program.launches.size(), 4u) << print(program);
  }
}

}  // namespace
}  // namespace opfuse::test
