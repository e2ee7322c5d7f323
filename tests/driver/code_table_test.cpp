// Which chains of operators on a quantised value become a table of 256 bytes: its rows lie in the kernel's code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "driver/proof_case.hpp"
#include "driver/runs_everywhere.hpp"
#include "interp/interpreter.hpp"

namespace opfuse {
namespace {

/// u8 with zero point 128; NAME -> NAMEd
std::string pair_behind(const std::string& name, const char* scale) {
  return fmt::format("%{0}q = quantize_linear(%{0}, %{1}, %z) %{0}d = dequantize_linear(%{0}q, %{1}, %z)\n", name,
                     scale);
}

constexpr const char* kNumbers = "%half = const splat<0.5> : f32[] %one = const splat<1> : f32[]\n";
/// As quantisers write them.
constexpr const char* kQuantisedNumbers =
    "%l = const splat<255> : u8[] %k = const splat<0.00390625> : f32[] %j = const splat<0.001953125> : f32[]\n"
    "%p = const splat<0> : u8[] %one = dequantize_linear(%l, %k, %p) %half = dequantize_linear(%l, %j, %p)\n";

/// GELU of %xd in its five operators, with a pair behind each; `factor` is what is multiplied with 1 + erf.
std::string gelu(const char* numbers, const std::string& factor = "%xd") {
  return std::string(numbers) + "%root = const splat<1.41421356> : f32[]\n%v = div(%xd, %root)\n" +
         pair_behind("v", "s") + "%e = erf(%vd)\n" + pair_behind("e", "t") + "%a = add(%ed, %one)\n" +
         pair_behind("a", "t") + fmt::format("%h = mul({}, %ad)\n", factor) + pair_behind("h", "s") +
         "%g = mul(%hd, %half)\n%y = quantize_linear(%g, %s, %z) return %y }";
}

constexpr const char* kSteps =
    "%s = const splat<0.03125> : f32[] %t = const splat<0.015625> : f32[] %z = const splat<128> : u8[]\n";

/// x = Q/DQ(linear(..))
std::string behind_a_product(const std::string& rest) {
  return std::string("graph (%in: f32[24,64], %r: f32[24,48]) {\n") + kSteps +
         "%c = const rand<1> : i8[64,48] %b = const rand<2> : f32[48] %sw = const splat<0.01> : f32[]\n"
         "%w = dequantize_linear(%c, %sw) %inq = quantize_linear(%in, %s, %z) %ind = dequantize_linear(%inq, %s, %z)\n"
         "%m = matmul(%ind, %w) %x = add(%m, %b)\n" +
         pair_behind("x", "s") + rest;
}

/// What the graph's own operators make of each code.
std::vector<uint8_t> table(const char* numbers) {
  const Graph graph = parse_graph(
      std::string("graph (%xq: u8[256]) {\n") + kSteps + "%xd = dequantize_linear(%xq, %s, %z)\n" + gelu(numbers),
      ops());
  Tensor codes(DType::u8, {256});
  for (int64_t i = 0; i < 256; ++i) codes.set_integer(i, i);
  const Tensor y = interpret(graph, {codes}).at(0);
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < 256; ++i) bytes.push_back(static_cast<uint8_t>(y.integer(i)));
  return bytes;
}

/// Of 16 rows of the table those that the kernels' code has: as constants of 16, 64 or 256 bytes.
int rows_in(const Executable& executable, const char* numbers) {
  const std::vector<uint8_t> bytes = table(numbers);
  const auto code = executable.artifact().code;
  int found = 0;
  for (size_t row = 0; row < 16; ++row)
    found += std::search(code.begin(), code.end(), bytes.begin() + static_cast<std::ptrdiff_t>(16 * row),
                         bytes.begin() + static_cast<std::ptrdiff_t>(16 * row + 16)) != code.end();
  return found;
}

class CodeTables : public testing::TestWithParam<std::string> {};

TEST_P(CodeTables, AreMadeOfAGeluWithAPairBehindEachOperator) {
  for (const char* numbers : {kNumbers, kQuantisedNumbers}) {
    const ProofCase one(behind_a_product(gelu(numbers)), GetParam());
    EXPECT_EQ(rows_in(one.executable, numbers), 16);
    for (const auto& g : one.compare()) EXPECT_TRUE(g.ok) << g.name;
  }
}

TEST_P(CodeTables, AreNotMadeWhereAnotherValueTakesPart) {
  const ProofCase one(behind_a_product(gelu(kNumbers, "%r")), GetParam());
  EXPECT_LT(rows_in(one.executable, kNumbers), 16);
  for (const auto& g : one.compare()) EXPECT_TRUE(g.ok) << g.name;
}

std::vector<std::string> names_of_targets() {
  std::vector<std::string> names;
  for (const TargetInfo& target : test::cpu_targets()) names.push_back(target.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Targets, CodeTables, testing::ValuesIn(names_of_targets()));

}  // namespace
}  // namespace opfuse
