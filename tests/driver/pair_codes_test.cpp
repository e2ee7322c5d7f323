// Which products of codes have their weights in pairs: by the weights' values, the target, and bounds on memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "driver/compilation.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

Compilation one_by_one(const TargetInfo& target, int code, const AlgorithmRequest& request = {}) {
  const std::string text = fmt::format(R"(graph (%x: f32[1,64,8,8]) {{
  %s = const splat<0.02> : f32[] %z = const splat<7> : u8[] %c = const splat<{}> : i8[64,64,1,1] %sw = const splat<0.01> : f32[]
  %w = dequantize_linear(%c, %sw) %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z)
  %v = conv(%d, %w) @"v" %y = quantize_linear(%v, %s, %z) return %y }})",
                                       code);
  CompilationOptions options;
  options.artifact.cache = false;
  options.algorithms = request;
  options.algorithms.threads = 1;
  return compile_graph(parse_graph(text, ops()), target, options);
}

/// Launches in pairs; the note says so.
int64_t paired(const Compilation& c) {
  const std::vector<Launch>& launches = c.program.launches;
  const auto count =
      std::count_if(launches.begin(), launches.end(), [](const Launch& l) { return l.schedule.get("paired", 0) != 0; });
  const bool noted = std::any_of(c.program.notes.begin(), c.program.notes.end(),
                                 [](const std::string& note) { return note.starts_with("codes in pairs in"); });
  EXPECT_EQ(noted, count > 0);
  return count;
}

}  // namespace

TEST(PairCodes, LieSoWhereSixteenBitsHoldThem) {
  const TargetInfo avx2 = parse_target("cpu:avx2");
  for (const int code : {64, -64, 3}) EXPECT_EQ(paired(one_by_one(avx2, code)), 1) << code;
  for (const int code : {65, -65, 127, -128}) EXPECT_EQ(paired(one_by_one(avx2, code)), 0) << code;
  TargetInfo twice = avx2;
  twice.kernels.paired_extras = 1;
  EXPECT_EQ(paired(one_by_one(twice, 127)), 1);
}

TEST(PairCodes, LieAsTheyAreWhereNothingIsGained) {
  EXPECT_EQ(paired(one_by_one(parse_target("cpu:avx2-vnni"), 3)), 0);
  EXPECT_EQ(paired(one_by_one(parse_target("cpu:avx512"), 3)), 0);
  TargetInfo never = parse_target("cpu:avx2");
  never.kernels.paired_extras = -1;
  EXPECT_EQ(paired(one_by_one(never, 3)), 0);
}

TEST(PairCodes, AreAnAlgorithmByName) {
  const TargetInfo avx2 = parse_target("cpu:avx2");
  const auto named = [](const Compilation& c) {
    const auto& all = c.program.algorithms;
    return std::count_if(all.begin(), all.end(), [](const Algorithm& a) { return a.name == "pairs"; });
  };
  EXPECT_EQ(named(one_by_one(avx2, 3)), 1);
  for (const char* text : {"pairs", "pairs@v"}) {
    const Compilation off = one_by_one(avx2, 3, {.skip = {text}});
    EXPECT_EQ(paired(off), 0) << text;
    EXPECT_EQ(named(off), 0) << text;
    EXPECT_EQ(paired(one_by_one(avx2, 127, {.only = {text}})), 1) << text;  // all octets twice
  }
  EXPECT_EQ(paired(one_by_one(avx2, 127, {.only = {"pairs"}, .least_memory = true})), 0);
  EXPECT_THROW(one_by_one(avx2, 127, {.only = {"pairs@v"}, .least_memory = true}), Error);
  EXPECT_THROW(one_by_one(avx2, 3, {.only = {"pairs@v"}, .skip = {"pairs"}}), Error);
  EXPECT_THROW(one_by_one(avx2, 3, {.skip = {"pairs@nothing"}}), Error);
  EXPECT_THROW(one_by_one(parse_target("cpu:avx2-vnni"), 3, {.only = {"pairs@v"}}), Error);
}

TEST(PairCodes, GrowWithinTheBoundOnMemory) {
  const TargetInfo avx2 = parse_target("cpu:avx2");
  EXPECT_EQ(paired(one_by_one(avx2, 3, {.max_weight_growth = 0})), 0);
  EXPECT_EQ(paired(one_by_one(avx2, 3, {.least_memory = true})), 0);
  EXPECT_EQ(paired(one_by_one(avx2, 3, {.max_weight_growth = 4096})), 1);
}

}  // namespace opfuse
