// Sums of products of bf16 numbers against the interpreter: on whole numbers, whose sums are exact in any order, and on
// drawn ones.
#include <limits>
#include <random>

#include "codegen/chain_regions.hpp"
#include "codegen/hot_loops.hpp"
#include "codegen/regions.hpp"
#include "codegen/run_kernel.hpp"
#include "testing/runs_here.hpp"

namespace opfuse::test {
namespace {

/// The region with its first two parameters in memory as bf16, and its result too.
std::string halved(std::string region, bool result) {
  const auto replace = [&](const std::string& from, const std::string& to) {
    const size_t at = region.find(from);
    if (at != std::string::npos) region.replace(at, from.size(), to);
  };
  replace("param input f32", "param input bf16");
  replace("param constant f32", "param constant bf16");
  const size_t sum = region.find("  reduction sum"), end = region.find('\n', sum);
  std::string line = region.substr(sum, end - sum);
  for (const char* read : {"r0", "r1"}) line.replace(line.find(read), 2, std::string("cast<f32>(") + read + ":bf16)");
  region.replace(sum, end - sum, line);
  if (!result) return region;
  replace("param output f32", "param output bf16");
  const size_t out = region.find("  output param");
  region.replace(region.find("f32[", out), 3, "bf16");
  const size_t begin = region.find(" = ", out) + 3, last = region.find('\n', begin);
  region.replace(begin, last - begin, "cast<bf16>(" + region.substr(begin, last - begin) + ")");
  return region;
}

/// The region with weights of 16 bits, which are widened for data of f32.
std::string widened(std::string region, const std::string& type) {
  const size_t at = region.find("param constant f32");
  region.replace(at, 18, "param constant " + type);
  const size_t sum = region.find("  reduction sum"), end = region.find('\n', sum);
  std::string line = region.substr(sum, end - sum);
  const size_t weights = line.find("r1");
  line.replace(weights, 2, "cast<f32>(r1:" + type + ")");
  return region.replace(sum, end - sum, line);
}

Tensor drawn(const TensorType& type, std::mt19937& draw, bool whole) {
  Tensor t(type.dtype, type.shape.evaluate({}));
  for (int64_t i = 0; i < t.elements(); ++i) {
    const auto number = static_cast<double>(draw() % 255) - 127;
    t.set_real(i, whole ? std::trunc(number / 16) : number / 100);
  }
  return t;
}

Case halves(const std::string& name, const std::string& region, bool whole, bool result = false) {
  Case c = wished(name + (whole ? "_whole" : ""), halved(region, result));
  c.tolerance = whole ? 0 : result ? 4e-3 : 2e-5;
  std::mt19937 draw(17);
  const Region parsed = parse_region(c.region);
  for (const Param& param : parsed.params) c.operands.push_back(drawn(param.type, draw, whole));
  return c;
}

/// Results are the bias alone: what rounds up, down, to even, to infinity, and what does not round.
Case rounded() {
  Case c = halves("rounded", gemm_region("19", 64, 32), false, true);
  c.tolerance = 0;
  for (int param : {0, 1})
    for (int64_t i = 0; i < c.operands[static_cast<size_t>(param)].elements(); ++i)
      c.operands[static_cast<size_t>(param)].set_real(i, 0);
  constexpr float kLargest = std::numeric_limits<float>::max(), kUnit = 0x1p-8F;
  const float numbers[] = {0,
                           1,
                           -1,
                           1 + kUnit,
                           1 + 3 * kUnit,
                           -1 - kUnit,
                           1 + kUnit / 2,
                           1 + kUnit + 0x1p-23F,
                           0x1p-126F,
                           -0x1.fffp-126F,
                           kLargest,
                           -kLargest,
                           3e38F,
                           std::numeric_limits<float>::infinity(),
                           1e-30F,
                           std::numeric_limits<float>::quiet_NaN(),
                           65504,
                           0.1F,
                           -0.3F};
  for (int64_t i = 0; i < c.operands[2].elements(); ++i) c.operands[2].set_real(i, numbers[i % std::ssize(numbers)]);
  return c;
}

Case weights(const std::string& name, const std::string& region, const std::string& type) {
  Case c = wished(name + "_" + type, widened(region, type));
  std::mt19937 draw(29);
  for (const Param& param : parse_region(c.region).params) c.operands.push_back(drawn(param.type, draw, false));
  return c;
}

Conv conv(int c, int o, int size, int k, int pad = 0, int stride = 1, int dilation = 1, int group = 1) {
  Conv v;
  v.c = c, v.o = o, v.h = v.w = size, v.kh = v.kw = k, v.pad = pad, v.stride = stride, v.dilation = dilation;
  v.group = group;
  return v;
}

Conv residual(Conv v, const std::string& n) {
  v.residual = true;
  v.n = n;
  return v;
}

Pair behind_a_stem() {
  Pair p = sized(3, 31, 29, 24);
  p.first.kh = p.first.kw = 3, p.first.stride = 2, p.first.pad = 1;
  return p;
}

/// A depthwise convolution of f32 whose result is stored in bf16.
std::string stored_in_halves(std::string region) {
  const auto replace = [&](const std::string& from, const std::string& to) {
    region.replace(region.rfind(from), from.size(), to);
  };
  replace("param output f32", "param output bf16");
  const size_t out = region.find("  output param"), begin = region.find(" = ", out) + 3,
               last = region.find('\n', begin);
  region.replace(begin, last - begin, "cast<bf16>(" + region.substr(begin, last - begin) + ")");
  return region.replace(region.find("f32[", out), 3, "bf16");
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const bool whole : {true, false}) {
    all.push_back(halves("one_by_one", conv_region(conv(64, 64, 6, 1)), whole));
    all.push_back(halves("long_rows", conv_region(conv(32, 48, 40, 1)), whole));
    all.push_back(halves("odd_channels", conv_region(conv(37, 51, 6, 1)), whole));
    all.push_back(halves("padded", conv_region(conv(20, 36, 6, 3, 1)), whole));
    all.push_back(halves("padded_rows", conv_region(conv(16, 32, 56, 3, 1)), whole));
    all.push_back(halves("strided", conv_region(conv(20, 24, 11, 3, 1, 2)), whole));
    all.push_back(halves("dilated", conv_region(conv(16, 32, 8, 3, 2, 1, 2)), whole));
    all.push_back(halves("groups", conv_region(conv(64, 64, 5, 3, 1, 1, 1, 2)), whole));
    all.push_back(halves("residual", conv_region(residual(conv(32, 80, 4, 1), "3")), whole));
    all.push_back(halves("features", gemm_region("40", 48, 64), whole));
    all.push_back(halves("features_16", gemm_region("19", 40, 48), whole));
    all.push_back(halves("features_odd", gemm_region("9", 33, 22, false), whole));
    all.push_back(halves("one_row", gemm_region("1", 96, 64), whole));
  }
  all.push_back(halves("taps_of_rows_at_once", conv_region(conv(3, 40, 21, 7, 3, 2)), true));
  all.push_back(halves("taps_of_rows_at_once_in_tiles", conv_region(conv(3, 64, 71, 3, 1)), false));
  all.push_back(halves("three_rows_at_once", conv_region(residual(conv(32, 48, 4, 3, 1), "2")), false));
  all.push_back(halves("stored", conv_region(conv(32, 40, 9, 3, 1)), false, true));
  all.push_back(halves("stored_in_pairs", conv_region(conv(32, 64, 9, 3, 1)), false, true));
  all.push_back(halves("stored_in_pairs_but_the_last", conv_region(conv(64, 112, 14, 1)), false, true));
  all.push_back(halves("stored_rows", gemm_region("40", 96, 64), false, true));
  all.push_back(halves("stored_rows_odd", gemm_region("21", 77, 64), false, true));
  all.push_back(halves("stored_one_row", gemm_region("1", 96, 64), false, true));
  all.push_back(rounded());
  return all;
}

/// What matrices take otherwise, or not at all.
std::vector<Case> cases_without_matrices() {
  std::vector<Case> all;
  for (const bool whole : {true, false}) {
    all.push_back(halves("half_a_vector", conv_region(conv(32, 24, 9, 1)), whole));
    all.push_back(halves("half_a_vector_padded", conv_region(conv(20, 40, 7, 3, 1)), whole));
    all.push_back(halves("colours", conv_region(conv(3, 32, 11, 3, 1, 2)), whole));
    all.push_back(halves("two_channels", conv_region(conv(2, 16, 9, 3, 1)), whole));
    all.push_back(halves("chain", chain_region(sized(16, 14, 13, 24)), whole));
    all.push_back(halves("chain_of_bands", chain_region(sized(24, 56, 56, 96, {.stride = 2})), whole));
    all.push_back(halves("chain_of_colours", chain_region(behind_a_stem()), whole));
  }
  return all;
}

std::vector<Case> cases_of_weights() {
  std::vector<Case> all;
  for (const char* type : {"f16", "bf16"}) {
    all.push_back(weights("one_by_one", conv_region(conv(64, 72, 6, 1)), type));
    all.push_back(weights("features_odd", gemm_region("9", 33, 22, false), type));
  }
  const auto add = [&](const char* name, const std::string& region) { all.push_back(weights(name, region, "f16")); };
  add("half_a_vector", conv_region(conv(32, 24, 9, 1)));
  add("padded", conv_region(conv(20, 36, 6, 3, 1)));
  add("image", conv_region(conv(3, 32, 11, 3, 1, 2)));
  add("groups", conv_region(conv(64, 64, 5, 3, 1, 1, 1, 2)));
  add("residual", conv_region(residual(conv(32, 80, 4, 1), "3")));
  add("features", gemm_region("40", 48, 64));
  add("one_row", gemm_region("1", 96, 64));
  return all;
}

/// Data of f16 beside weights of f32 or f16.
std::vector<Case> cases_of_maps() {
  std::vector<Case> all;
  const auto add = [&](const std::string& name, const std::string& region, const char* type) {
    std::string stored = std::string(type) == "f32" ? region : widened(region, type);
    stored.replace(stored.find("param input f32"), 15, "param input f16");
    const size_t sum = stored.find("  reduction sum"), end = stored.find('\n', sum);
    std::string line = stored.substr(sum, end - sum);
    line.replace(line.find("r0"), 2, "cast<f32>(r0:f16)");
    Case c = wished(name + "_" + type, stored.replace(sum, end - sum, line));
    c.tolerance = 2e-5;
    std::mt19937 draw(17);
    const Region parsed = parse_region(c.region);
    for (const Param& param : parsed.params) c.operands.push_back(drawn(param.type, draw, false));
    all.push_back(c);
  };
  for (const char* type : {"f32", "f16"}) {
    add("one_by_one", conv_region(conv(64, 72, 6, 1)), type);
    add("half_a_vector", conv_region(conv(32, 24, 9, 1)), type);
    add("padded", conv_region(conv(24, 36, 6, 3, 1)), type);
  }
  add("odd_channels", conv_region(conv(37, 51, 6, 1)), "f16");
  add("strided", conv_region(conv(20, 24, 11, 3, 1, 2)), "f16");
  add("long_rows", conv_region(conv(32, 16, 40, 1)), "f32");
  add("residual", conv_region(residual(conv(32, 80, 4, 1), "3")), "f16");
  return all;
}

class WidenedWeights : public testing::TestWithParam<std::tuple<Case, TargetInfo>> {};

TEST_P(WidenedWeights, HaveTheInterpretersNumbers) {
  const auto& [c, target] = GetParam();
  const KernelSpec spec = spec_of(c, target);
  EXPECT_EQ(spec.schedule.skeleton, "contraction") << spec.schedule.text();
  check_spec(c, spec, target);
}

INSTANTIATE_TEST_SUITE_P(Kernels, WidenedWeights,
                         testing::Combine(testing::ValuesIn(cases_of_weights()), testing::ValuesIn(runnable_targets())),
                         [](const auto& info) { return case_name(std::get<0>(info.param), std::get<1>(info.param)); });

class WidenedMaps : public testing::TestWithParam<std::tuple<Case, TargetInfo>> {};

TEST_P(WidenedMaps, HaveTheInterpretersNumbers) {
  const auto& [c, target] = GetParam();
  const KernelSpec spec = spec_of(c, target);
  EXPECT_EQ(spec.schedule.skeleton, "contraction") << spec.schedule.text();
  check_spec(c, spec, target);
}

INSTANTIATE_TEST_SUITE_P(Kernels, WidenedMaps,
                         testing::Combine(testing::ValuesIn(cases_of_maps()), testing::ValuesIn(runnable_targets())),
                         [](const auto& info) { return case_name(std::get<0>(info.param), std::get<1>(info.param)); });

std::vector<TargetInfo> targets() { return targets_here({"cpu:avx512-bf16", "cpu:avx512-amx"}); }

}  // namespace

TEST(HalvesAssembly, ProductsAreAloneInTheirLoops) {
  for (const char* name : {"cpu:avx512-bf16", "cpu:avx512-amx"}) {
    const TargetInfo target = parse_target(name);
    for (const auto& [title, region] :
         {std::pair{"3x3", conv_region(conv(64, 64, 14, 3, 1))}, std::pair{"1x1", conv_region(conv(128, 64, 14, 1))},
          std::pair{"features", gemm_region("40", 48, 64)}}) {
      SCOPED_TRACE(std::string(name) + " " + title);
      expect_clean_products(spec_of(halves(title, region, true), target), target, "vdpbf16ps|tdpbf16ps");
    }
  }
}

TEST(HalvesAssembly, ResultsAreRoundedByInstruction) {
  for (const char* name : {"cpu:avx512-bf16", "cpu:avx512-amx"}) {
    const TargetInfo target = parse_target(name);
    CodegenOptions options;
    options.emit_assembly = true;
    const KernelSpec spec = spec_of(halves("rows", gemm_region("40", 64, 64), false, true), target);
    const std::string text = generate({spec}, target, options).kernels[0].assembly;
    EXPECT_NE(text.find("vcvtne2ps2bf16"), std::string::npos) << text;
    EXPECT_EQ(text.find("vpsrld"), std::string::npos) << text;  // by integers: nine instructions
    EXPECT_EQ(text.find("vpmovdw"), std::string::npos) << text;
  }
}

TEST(HalvesAssembly, DepthwiseSumsAreRoundedByInstruction) {
  CodegenOptions options;
  options.emit_assembly = true;
  const std::string region = stored_in_halves(conv_region(conv(64, 64, 14, 3, 1, 1, 1, 64)));
  for (const bool has : {true, false}) {
    const TargetInfo target = parse_target(has ? "cpu:avx512-bf16" : "cpu:avx512");
    const std::string text = generate({spec_of(wished("", region), target)}, target, options).kernels[0].assembly;
    EXPECT_EQ(text.find("vcvtneps2bf16") != std::string::npos, has) << text;
  }
}

TEST(HalvesSchedule, TwoPixelsShareTheLastVector) {
  const TargetInfo target = parse_target("cpu:avx512-bf16");
  const auto half = [&](int channels) {
    return spec_of(halves("1x1", conv_region(conv(32, channels, 14, 1)), true), target).schedule.get("half", 0);
  };
  EXPECT_EQ(half(24), 1);
  EXPECT_EQ(half(32), 0);
  EXPECT_EQ(half(28), 0) << "more than half a vector";
}

TEST(HalvesLayout, ColoursTakeTwoWords) {
  const auto block = [](const char* name, int channels) {
    const TargetInfo target = parse_target(name);
    const auto wish =
        wish_layouts(parse_region(halves("", conv_region(conv(channels, 32, 11, 3, 1)), true).region), target);
    return wish.params[0]->block_of(1);
  };
  EXPECT_EQ(block("cpu:avx512-bf16", 3), 4);
  EXPECT_EQ(block("cpu:avx512-bf16", 5), 16);
}

TEST(HalvesSchedule, MatricesAreCutIntoPartsForAFewThreads) {
  const auto parts = [](int64_t threads) {
    TargetInfo target = parse_target("cpu:avx512-amx");
    target.launch.threads = threads;
    const Schedule s = spec_of(halves("3x3", conv_region(conv(64, 64, 56, 3, 1)), true), target).schedule;
    EXPECT_EQ(s.get("matrix", 0), 1) << s.text();
    return s.get("parts_o", 1) * s.get("parts_p", 1);
  };
  EXPECT_EQ(parts(1), 4);
  EXPECT_EQ(parts(4), 4);
  EXPECT_GE(parts(16), 16);
}

class HalvesTest : public testing::TestWithParam<std::tuple<Case, TargetInfo>> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HalvesTest);

TEST_P(HalvesTest, HasTheInterpretersNumbers) {
  const auto& [c, target] = GetParam();
  const KernelSpec spec = spec_of(c, target);
  ASSERT_EQ(spec.schedule.skeleton, "contraction") << spec.schedule.text();
  const bool many = c.name.find("one_row") == std::string::npos && c.name.find("features_odd") == std::string::npos;
  EXPECT_EQ(spec.schedule.get("matrix", 0), target.has("amx-bf16") && many) << spec.schedule.text();
  check_spec(c, spec, target);
}

class HalvesInVectors : public testing::TestWithParam<Case> {};

TEST_P(HalvesInVectors, HaveTheInterpretersNumbers) {
  const TargetInfo target = parse_target("cpu:avx512-bf16");
  if (targets_here({"cpu:avx512-bf16"}).empty()) GTEST_SKIP() << "this machine has no avx512bf16";
  const KernelSpec spec = spec_of(GetParam(), target);
  const bool chain = GetParam().name.starts_with("chain");
  ASSERT_EQ(spec.schedule.skeleton, chain ? "chain" : "contraction") << spec.schedule.text();
  check_spec(GetParam(), spec, target);
}

INSTANTIATE_TEST_SUITE_P(Kernels, HalvesInVectors, testing::ValuesIn(cases_without_matrices()),
                         [](const auto& info) { return info.param.name; });

TEST(HalvesChain, IsRefusedWhereMatricesMultiply) {
  const Region region = parse_region(halved(chain_region(sized(16, 14, 13, 24)), false));
  EXPECT_EQ(cannot_generate(region, parse_target("cpu:avx512-bf16")), std::nullopt);
  EXPECT_NE(cannot_generate(region, parse_target("cpu:avx512-amx")), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Kernels, HalvesTest,
                         testing::Combine(testing::ValuesIn(cases()), testing::ValuesIn(targets())),
                         [](const auto& info) { return case_name(std::get<0>(info.param), std::get<1>(info.param)); });

}  // namespace opfuse::test
