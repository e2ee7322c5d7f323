// Pointwise convolutions of a map times a gate per channel: weights take the gate where that is less work.
#include "codegen/regions.hpp"
#include "codegen/run_kernel.hpp"
#include "cpu/window/channel_factor_cost.hpp"
#include "kernel/views.hpp"

namespace opfuse::test {
namespace {

const std::vector<SymbolValues> kBatches = {{{"n", 1}}, {{"n", 2}}, {{"n", 3}}, {{"n", 17}}};

struct Gated {
  std::string n = "1";
  int c = 48, h = 28, w = 28, o = 24;
  std::string data = "mul(r0, r3)";
  std::string gate = "[a0, a4, 0, 0]";
  bool residual = false;
};

std::string gated(const Gated& g) {
  Conv v{.n = g.n, .c = g.c, .h = g.h, .w = g.w, .o = g.o, .kh = 1, .kw = 1, .pad = 0, .residual = g.residual};
  std::string text = conv_region(v);
  const auto put = [&](const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  // the gate is the last parameter, so that the others keep their numbers
  put("stage contraction", fmt::format("param input f32[{},{},1,1]\nstage contraction", g.n, g.c));
  const int param = g.residual ? 5 : 4, read = g.residual ? 4 : 3;
  put("  reduction sum mul(r0,", fmt::format("  read param {} at {}\n  reduction sum mul({},", param, g.gate,
                                             g.residual ? "mul(r0, r4)" : g.data));
  EXPECT_EQ(read, param - 1);
  return text;
}

const std::vector<Case> kGates = {
    wished("rows_of_28", gated({})),
    wished("gate_first", gated({.data = "mul(r3, r0)"})),
    wished("112x112_of_32", gated({.c = 32, .h = 112, .w = 112, .o = 16})),
    wished("channels_end_inside_vectors", gated({.c = 37, .h = 14, .w = 13, .o = 41})),
    wished("many_channels", gated({.c = 240, .h = 28, .w = 28, .o = 40})),
    wished("residual", gated({.c = 72, .o = 40, .residual = true})),
    wished("one_row", gated({.c = 64, .h = 1, .w = 9, .o = 32})),
    wished("one_pixel", gated({.c = 64, .h = 1, .w = 1, .o = 32})),
    wished("images", gated({.n = "3"})),
    wished("images_unbound", gated({.n = "n", .c = 40, .h = 10, .w = 9}), kBatches),
    wished("gate_of_all_images", gated({.n = "n", .gate = "[0, a4, 0, 0]"}), kBatches),
    [] {
      Case c = wished("dense_map", gated({.c = 20, .h = 12, .w = 11}));
      c.layouts = {"0123"};
      return c;
    }(),
};
OPFUSE_CASES(Gate, kGates);

const TargetInfo kTarget = parse_target("cpu:avx512");

int gate_of(const std::string& text) {
  return std::get<ContractionView>(view_contraction(parse_region(text), 0)).factor;
}

TEST(GateView, sees_a_factor_per_channel_and_image_only) {
  EXPECT_EQ(gate_of(gated({})), 3);
  EXPECT_EQ(gate_of(gated({.data = "mul(r3, r0)"})), 3);
  EXPECT_EQ(gate_of(gated({.data = "add(r0, r3)"})), -1);
  EXPECT_EQ(gate_of(gated({.data = "max(mul(r0, r3), 0)"})), -1);
}

TEST(GateSchedule, scales_weights_once_per_part) {
  EXPECT_EQ(spec_of(wished("", gated({})), kTarget).schedule.get("pack", 0), 1);
  EXPECT_EQ(spec_of(wished("", gated({.h = 1, .w = 1})), kTarget).schedule.get("pack", 0), 0);
}

TEST(ChannelFactorCost, weighs_the_map_against_the_weights) {
  const auto loses = [](const Gated& g) { return channel_factor_loses(parse_region(gated(g)), kTarget).value_or(""); };
  EXPECT_EQ(loses({.c = 144, .h = 56, .w = 56, .o = 24}), "");
  EXPECT_THAT(loses({.c = 1152, .h = 7, .w = 7, .o = 192}), testing::HasSubstr("kilocycles"));
  EXPECT_THAT(loses({.h = 1, .w = 1}), testing::HasSubstr("kilocycles"));
  EXPECT_THAT(loses({.data = "add(r0, r3)"}), testing::HasSubstr("one per input channel"));
}

}  // namespace
}  // namespace opfuse::test
