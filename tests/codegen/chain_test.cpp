// A convolution and a depthwise one behind it in one kernel: bands, borders, channel tails; what is refused.
#include "codegen/chain_regions.hpp"
#include "codegen/run_kernel.hpp"
#include "cpu/window/chain_cut.hpp"
#include "region/region.hpp"

namespace opfuse::test {
namespace {

Pair batched(const std::string& n, Pair p) {
  p.first.n = n;
  return p;
}

Pair with_taps() {
  Pair p = sized(3, 31, 29, 24);
  p.first.kh = p.first.kw = 3, p.first.stride = 2, p.first.pad = 1;
  return p;
}

Case dense(std::string name, const Pair& p) {
  Case c = wished(std::move(name), chain_region(p));
  c.layouts = {"", "", "", "", "", "0123"};
  return c;
}

const std::vector<Case> kChains = {
    dense("result_in_the_caller_s_array", sized(16, 14, 13, 24)),
    wished("square", chain_region({})),
    wished("channels_end_inside_a_vector", chain_region(sized(24, 14, 13, 40))),
    wished("channels_end_inside_a_block", chain_region(sized(16, 28, 28, 72))),
    wished("stride_2", chain_region(sized(16, 28, 27, 48, {.stride = 2}))),
    wished("stride_2_even", chain_region(sized(16, 56, 56, 96, {.stride = 2}))),
    wished("five_by_five", chain_region(sized(20, 23, 17, 36, {.kh = 5, .kw = 5, .pad = 2}))),
    wished("five_by_five_stride_2", chain_region(sized(20, 28, 28, 36, {.kh = 5, .kw = 5, .stride = 2, .pad = 2}))),
    wished("stride_3_leaves_rows_out", chain_region(sized(16, 32, 32, 32, {.kh = 2, .kw = 2, .stride = 3, .pad = 0}))),
    wished("dilated", chain_region(sized(16, 21, 21, 32, {.pad = 2, .dilation = 2}))),
    wished("without_padding", chain_region(sized(16, 17, 19, 32, {.pad = 0}))),
    wished("much_padding", chain_region(sized(16, 7, 7, 32, {.pad = 4}))),
    wished("many_bands", chain_region(sized(16, 112, 112, 64))),
    wished("one_row", chain_region(sized(16, 1, 40, 32))),
    wished("images", chain_region(batched("3", sized(16, 14, 14, 64)))),
    wished("images_unbound", chain_region(batched("n", sized(16, 14, 14, 64))), {{{"n", 1}}, {{"n", 4}}}),
    wished("behind_a_stem", chain_region(with_taps())),
    wished("hard_swish",
           [] {
             Pair p = sized(16, 28, 28, 48);
             p.first.activation = p.second.activation = "mul({0}, max(min(add(mul({0}, 0.16666667), 0.5), 1), 0))";
             return chain_region(p);
           }()),
};
OPFUSE_CASES(Chain, kChains);

const TargetInfo kTarget = parse_target("cpu:avx512");

TEST(ChainSchedule, holds_few_rows_of_a_large_map) {
  const Schedule s = spec_of(wished("", chain_region(sized(16, 112, 112, 96, {.stride = 2}))), kTarget).schedule;
  const int64_t held = (2 * s.get("band", 0) + 1) * 112 * s.get("nv", 0) * 64;
  EXPECT_GT(s.get("band", 0), 0);
  EXPECT_LE(held, kTarget.l2_bytes / 2);
}

TEST(ChainSchedule, prefers_parts_along_channels_which_share_no_rows) {
  const Region region = parse_region(chain_region(sized(96, 14, 14, 576)));
  const ChainCut cut = cut_chain(region, std::get<ChainView>(view_chain(region)), 2, kTarget);
  EXPECT_EQ(cut.parts_p, 1);
  EXPECT_EQ(cut.recompute, 1);
  EXPECT_GE(cut.parts_o, 4);
  EXPECT_LE(cut.imbalance, 1.02);
}

TEST(ChainView, refuses_what_is_no_chain_with_a_reason) {
  const auto refusal = [](const std::string& from, const std::string& to) {
    std::string text = chain_region({});
    for (size_t at = from.empty() ? std::string::npos : text.find(from); at != std::string::npos;
         at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
    return cannot_generate(parse_region(text), kTarget).value_or("");
  };
  EXPECT_EQ(refusal("", ""), "");
  EXPECT_THAT(refusal("stage window", "stage row"),
              testing::HasSubstr("the reduction of its rows: not one of matrices whose columns are the last axis"));
  EXPECT_THAT(refusal("f32", "f64"), testing::HasSubstr("f32"));
  EXPECT_THAT(refusal(",9,", ",h,"), testing::HasSubstr("symbolic image extents"));
}

}  // namespace
}  // namespace opfuse::test
