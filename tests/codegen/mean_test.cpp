// Means of a depthwise convolution's map, summed by the kernel that makes it: bands, channel tails, images, layouts;
// behind another convolution too; what is refused.
#include "codegen/chain_regions.hpp"
#include "codegen/run_kernel.hpp"
#include "cpu/window/mean_view.hpp"

namespace opfuse::test {
namespace {

const std::vector<SymbolValues> kBatches = {{{"n", 1}}, {{"n", 2}}, {{"n", 3}}, {{"n", 17}}};
const std::string kSilu = "div({0}, add(1, exp(neg({0}))))";

std::string depthwise(int c, int h, int w, int bands, Conv v = {}) {
  v.c = v.o = v.group = c, v.h = h, v.w = w;
  return with_means(conv_region(v), v.n, c, conv_extent(h, v.kh, v), conv_extent(w, v.kw, v), bands);
}

std::string chain(const std::string& n, Pair p, int bands) {
  p.first.n = n;
  const int h = conv_extent(p.first.h, p.first.kh, p.first), w = conv_extent(p.first.w, p.first.kw, p.first);
  return with_means(chain_region(p), n, p.first.o, conv_extent(h, p.second.kh, p.second),
                    conv_extent(w, p.second.kw, p.second), bands);
}

Case in(std::string name, std::vector<std::string> layouts, std::string region) {
  Case c = wished(std::move(name), std::move(region));
  c.layouts = std::move(layouts);
  return c;
}

const std::vector<Case> kMeans = {
    wished("two_bands", depthwise(32, 14, 14, 2)),
    wished("one_band", depthwise(48, 7, 7, 1)),
    wished("a_row_each", depthwise(16, 5, 9, 5)),
    wished("channels_end_inside_a_vector", depthwise(37, 8, 11, 2)),
    wished("fewer_channels_than_lanes", depthwise(3, 8, 8, 2)),
    wished("silu", depthwise(72, 28, 28, 2, {.activation = kSilu})),
    wished("silu_rows_of_seven", depthwise(32, 68, 7, 2, {.activation = kSilu})),
    wished("silu_rows_of_seventeen", depthwise(37, 14, 17, 2, {.activation = kSilu})),
    wished("silu_one_row", depthwise(16, 1, 28, 1, {.activation = kSilu})),
    wished("silu_rows_too_long_to_rest", depthwise(16, 2, 257, 1, {.activation = kSilu})),
    wished("stride_2", depthwise(24, 28, 28, 2, {.kh = 5, .kw = 5, .stride = 2, .pad = 2})),
    wished("images", depthwise(32, 14, 14, 2, {.n = "3"})),
    wished("images_unbound", depthwise(40, 10, 9, 2, {.n = "n", .activation = kSilu}), kBatches),
    in("dense_image", {"0123"}, depthwise(20, 8, 9, 2)),
    in("dense_result", {"", "", "", "0123"}, depthwise(20, 8, 9, 2)),
    in("dense_means", {"", "", "", "", "0123"}, depthwise(20, 8, 9, 2)),
    wished("chain_two_bands", chain("1", sized(16, 28, 28, 48), 2)),
    wished("chain_one_band", chain("1", sized(16, 9, 11, 40), 1)),
    wished("chain_silu_stride_2",
           [] {
             Pair p = sized(16, 56, 56, 96, {.stride = 2});
             p.first.activation = p.second.activation = kSilu;
             return chain("1", p, 2);
           }()),
    wished("chain_many_bands_of_scratch", chain("1", sized(16, 112, 112, 64), 2)),
    wished("chain_images_unbound", chain("n", sized(16, 14, 14, 64), 2), kBatches),
};
OPFUSE_CASES(Means, kMeans);

const TargetInfo kTarget = parse_target("cpu:avx512");

TEST(MeansSchedule, cuts_rows_where_bands_end) {
  for (const std::string& text : {depthwise(240, 28, 28, 2), chain("1", sized(16, 56, 56, 144), 2)}) {
    const Schedule s = spec_of(wished("", text), kTarget).schedule;
    EXPECT_EQ(s.get("parts_p", 0), 2) << s.text();
    EXPECT_GE(s.get("parts_o", 0), 2) << s.text();
  }
}

TEST(MeansView, sees_only_whole_bands_of_a_stored_map) {
  const auto seen = [](const std::string& from, const std::string& to) {
    std::string text = depthwise(32, 14, 14, 2);
    if (!from.empty()) text.replace(text.rfind(from), from.size(), to);
    return view_means(parse_region(text)).has_value();
  };
  EXPECT_TRUE(seen("", ""));
  EXPECT_FALSE(seen("reduction sum", "reduction max"));
  EXPECT_FALSE(seen("7*a2", "6*a2"));
  EXPECT_FALSE(seen("reduce [7,14]", "reduce [7,13]"));
  EXPECT_FALSE(seen("reduction sum r0", "reduction sum mul(r0, r0)"));
}

}  // namespace
}  // namespace opfuse::test
