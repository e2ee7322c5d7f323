// Weights that a model stores as codes: kept so by kernels of every target, equal to the interpreter, in spellings that
// exporters write.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cpu/contraction/digits.hpp"
#include "driver/compilation.hpp"
#include "driver/proof_case.hpp"

namespace opfuse {
namespace {

struct Product {
  std::string rows;  ///< a number, or a symbol
  int64_t depth, columns, block;
  const char* codes;
  bool zeros;
  int64_t bits;
  std::vector<int64_t> runs{};  ///< values of the symbol
};

/// Codes [N, K] with a scale for each block of K, behind a transpose: what MatMulNBits becomes when it is read.
std::string blocked(const Product& p) {
  const int64_t blocks = (p.depth + p.block - 1) / p.block;
  return fmt::format(R"(graph (%x: f32[{0},{1}]) {{ %c = const rand<1> : {5}[{2},{1}] %s = const rand<2> : f32[{2},{3}]
    {6} %w = dequantize_linear(%c, %s{7}) {{axis = 1, block_size = {4}}} %t = transpose(%w) {{perm = [1,0]}}
    %b = const rand<4> : f32[{2}] %y = matmul(%x, %t) %z = add(%y, %b) %r = relu(%z) return %r }})",
                     p.rows, p.depth, p.columns, blocks, p.block, p.codes,
                     p.zeros ? fmt::format("%zp = const rand<3> : {}[{},{}]", p.codes, p.columns, blocks) : "",
                     p.zeros ? ", %zp" : "");
}

Compilation compiled(const std::string& text, const TargetInfo& target, CompilationOptions options = {}) {
  options.artifact.cache = false;
  return compile_graph(parse_graph(text, ops()), target, options);
}

/// Bytes of all constants.
int64_t constant_bytes(const Compilation& c) {
  int64_t bytes = 0;
  for (const Buffer& b : c.program.buffers)
    if (b.kind == BufferKind::constant) bytes += static_cast<int64_t>(b.constant.bytes());
  return bytes;
}

/// With each of the sizes; kernels are built once.
void expect_proven(const Compilation& c, const std::vector<SymbolValues>& sizes = {{}}) {
  const Executable e = Executable::from_artifact(build_artifact(c.program, c.target, {.cache = false}));
  for (const SymbolValues& symbols : sizes)
    for (const auto& g :
         compare_groups(c.fused, c.program, e, random_inputs(c.fused, {.seed = 1, .symbols = symbols}), {}))
      EXPECT_TRUE(g.ok) << g.name << " on " << c.target.name;
}

/// Rows decided when compiling and at run time, depths that end inside a word or a block, columns that end inside a
/// vector.
TEST(PackedCodes, AreDecodedOnEveryTarget) {
  const Product products[] = {
      {"1", 128, 128, 32, "u4", true, 4},          {"3", 100, 45, 64, "u4", true, 4},
      {"1", 131, 70, 16, "i4", false, 4},          {"17", 160, 37, 128, "u4", false, 4},
      {"1", 203, 33, 32, "u8", true, 8},           {"19", 77, 64, 16, "i8", false, 8},
      {"1", 300, 72, 64, "u4", false, 4},          {"m", 128, 80, 32, "u4", true, 4, {1, 2, 4, 5, 23}},
      {"m", 90, 66, 32, "i8", true, 8, {1, 3, 40}}};
  const char* const targets[] = {"host", "cpu:avx2", "cpu:baseline"};
  for (size_t t = 0; t < std::size(targets); ++t)
    for (size_t i = 0; i < std::size(products); ++i) {
      if (i % std::size(targets) != t) continue;  // a third of them on each
      const Product& p = products[i];
      const TargetInfo target = parse_target(targets[t]);
      SCOPED_TRACE(fmt::format("{} {} x {} x {} of {}", target.name, p.rows, p.depth, p.columns, p.codes));
      const Compilation c = compiled(blocked(p), target);
      const auto told = of_pass(c.verdicts, "pack-codes");
      ASSERT_EQ(told.size(), 1u);
      ASSERT_EQ(told[0].code(), "done") << told[0].refused->message;
      ASSERT_EQ(c.program.launches.size(), 1u);
      EXPECT_EQ(c.program.launches[0].schedule.skeleton, "contraction");
      std::vector<SymbolValues> sizes;
      for (const int64_t rows : p.runs) sizes.push_back({{p.rows, rows}});
      expect_proven(c, p.runs.empty() ? std::vector<SymbolValues>{{}} : sizes);
    }
}

bool multiplies_digits(const Compilation& c) { return c.program.launches.at(0).schedule.get(kDigits, 0) != 0; }

/// A row, alone or at run time, where bytes are multiplied; blocks in which a chunk fits.
TEST(PackedCodes, OfARowAreMultipliedAsBytes) {
  CompilationOptions exact;
  exact.algorithms.exact = true;
  for (const char* name : {"cpu:avx512-vnni", "cpu:avx2-vnni"}) {
    const TargetInfo target = parse_target(name);
    const auto digits = [&](const std::string& rows, int64_t block, const CompilationOptions& options = {}) {
      return multiplies_digits(compiled(blocked({rows, 96, 48, block, "u4", true, 4}), target, options));
    };
    EXPECT_TRUE(digits("1", 32)) << name;
    EXPECT_TRUE(digits("m", 16)) << name;
    EXPECT_FALSE(digits("2", 32)) << name;
    EXPECT_FALSE(digits("1", 8)) << name;
    EXPECT_FALSE(digits("1", 32, exact)) << name;
    const Compilation noted = compiled(blocked({"1", 96, 48, 32, "u4", true, 4}), target);
    EXPECT_THAT(noted.program.notes,
                ::testing::Contains(::testing::HasSubstr("whole numbers of 24 bits in 1 product")));
  }
  EXPECT_FALSE(multiplies_digits(compiled(blocked({"1", 96, 48, 32, "u4", true, 4}), parse_target("cpu:avx2"))));
}

/// Every kind of number in a row: what bytes cannot hold is multiplied as floats.
TEST(PackedCodes, OfARowOfAnyNumbers) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  const std::vector<std::pair<float, float>> rows = {// all of them, and one in the middle
                                                     {0, 0},     {1, 1.9999f},     {-1.9999f, 1},     {1, 3e4f},
                                                     {1e33f, 1}, {1e-30f, 1e-38f}, {1e-39f, -1e-41f}, {1, kNaN},
                                                     {kInf, 1},  {-1, -kInf}};
  CompilationOptions exact;
  exact.algorithms.exact = true;
  for (const Product& p : {Product{"1", 150, 40, 32, "u4", true, 4}, Product{"m", 150, 40, 32, "i8", false, 8},
                           Product{"1", 140, 70, 64, "u8", true, 8}}) {
    const std::string text = blocked(p);
    const Executable bytes = Executable::from_artifact(compiled(text, parse_target("host")).artifact);
    const Executable floats = Executable::from_artifact(compiled(text, parse_target("host"), exact).artifact);
    for (const auto& [all, one] : rows) {
      Tensor x(DType::f32, {1, p.depth});
      for (int64_t i = 0; i < p.depth; ++i) x.set_real(i, i == 77 ? one : all * (i % 3 ? 0.75 : -1));
      const Tensor got = run_executable(bytes, {x}).at(0), want = run_executable(floats, {x}).at(0);
      double most = 1e-38;
      for (int64_t i = 0; i < want.elements(); ++i)
        if (std::isfinite(want.real(i))) most = std::max(most, std::fabs(want.real(i)));
      for (int64_t i = 0; i < want.elements(); ++i) {
        const double a = got.real(i), b = want.real(i);
        if (std::isfinite(b))
          EXPECT_NEAR(a, b, 4e-6 * most) << p.codes << ' ' << all << ' ' << one << " at " << i;
        else
          EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << all << ' ' << one << ": " << a << ", not " << b;
      }
    }
  }
}

TEST(PackedCodes, LieInAsManyBytesAsInTheFile) {
  const Compilation c = compiled(blocked({"1", 512, 512, 32, "u4", true, 4}), parse_target("cpu:avx2"));
  const int64_t file = 512 * 512 / 2 + 512 * 16 * 4 + 512 * 16 / 2 + 512 * 4;
  EXPECT_LE(static_cast<double>(constant_bytes(c)), 1.05 * static_cast<double>(file));
}

/// A scale per column, blocks behind a reshape with and without block_size, and Gemm's own transpose.
TEST(PackedCodes, InTheSpellingsOfExporters) {
  const char* const graphs[] = {
      R"(graph (%x: f32[2,96]) { %c = const rand<1> : i8[96,64] %s = const rand<2> : f32[64]
        %w = dequantize_linear(%c, %s) {axis = 1} %y = matmul(%x, %w) return %y })",
      R"(graph (%x: f32[2,96]) { %c = const rand<1> : u4[64,3,32] %s = const rand<2> : f32[64,3,1]
        %w = dequantize_linear(%c, %s) {axis = 2, block_size = 32} %f = const dense<64,96> : i64[2] %v = reshape(%w, %f)
        %t = transpose(%v) {perm = [1,0]} %y = matmul(%x, %t) return %y })",
      R"(graph (%x: f32[2,96]) { %c = const rand<1> : u8[192,32] %s = const rand<2> : f32[192] %z = const rand<3> : u8[192]
        %w = dequantize_linear(%c, %s, %z) {axis = 0} %f = const dense<64,96> : i64[2] %v = reshape(%w, %f)
        %y = gemm(%x, %v) {transB = true} return %y })",
      R"(graph (%x: f32[2,5,96]) { %c = const rand<1> : i8[64,96] %s = const splat<0.02> : f32[]
        %w = dequantize_linear(%c, %s) %t = transpose(%w) {perm = [1,0]} %y = matmul(%x, %t) return %y })"};
  for (const char* text : graphs) {
    SCOPED_TRACE(text);
    const Compilation c = compiled(text, parse_target("cpu:avx2"));
    const auto told = of_pass(c.verdicts, "pack-codes");
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].code(), "done") << told[0].refused->message;
    expect_proven(c);
  }
}

TEST(PackedCodes, SayWhyTheyBecomeFloats) {
  const auto code_of = [](const char* text, CompilationOptions options = {}) {
    const Compilation c = compiled(text, parse_target("cpu:avx2"), options);
    const auto told = of_pass(c.verdicts, "pack-codes");
    expect_proven(c);
    return told.size() == 1 ? told[0].code() : "";
  };
  EXPECT_EQ(code_of(R"(graph (%x: f32[2,96]) { %c = const rand<1> : i8[96,64] %s = const rand<2> : f32[96]
    %w = dequantize_linear(%c, %s) {axis = 0} %y = matmul(%x, %w) return %y })"),
            "blocks");
  EXPECT_EQ(code_of(R"(graph (%x: f32[2,96]) { %c = const rand<1> : u4[64,96] %s = const rand<2> : f32[64,24]
    %w = dequantize_linear(%c, %s) {axis = 1, block_size = 4} %y = gemm(%x, %w) {transB = true} return %y })"),
            "blocks");
  EXPECT_EQ(code_of(R"(graph (%x: f32[1,16,8,8]) { %c = const rand<1> : i8[32,16,3,3] %s = const rand<2> : f32[32]
    %w = dequantize_linear(%c, %s) {axis = 0} %y = conv(%x, %w) {pads = [1,1,1,1]} %r = relu(%y) return %r })"),
            "convolution");
  CompilationOptions off;
  off.no_pass = {"pack-codes"};
  EXPECT_EQ(code_of(R"(graph (%x: f32[2,96]) { %c = const rand<1> : i8[96,64] %s = const rand<2> : f32[64]
    %w = dequantize_linear(%c, %s) {axis = 1} %y = matmul(%x, %w) return %y })",
                    off),
            "disabled");
}

std::string coded(const char* name, int seed, int64_t depth, int64_t columns) {
  return fmt::format(
      "%c{0} = const rand<{1}> : i8[{2},{3}] %s{0} = const splat<0.01> : f32[{3}]\n"
      "%w{0} = dequantize_linear(%c{0}, %s{0}) {{axis = 1}}\n",
      name, seed, depth, columns);
}

/// Projections of one operand, and the two products of a gated MLP.
TEST(PackedCodes, OfSeveralProductsOfOneOperandStayCodes) {
  const std::string attention = "graph (%x: f32[1,16,128]) {\n" + coded("q", 1, 128, 128) + coded("k", 2, 128, 128) +
                                coded("v", 3, 128, 128) + R"(
    %shape = const dense<1,16,4,32> : i64[4]
    %q = matmul(%x, %wq) %k = matmul(%x, %wk) %v = matmul(%x, %wv)
    %rq = reshape(%q, %shape) %rk = reshape(%k, %shape) %rv = reshape(%v, %shape)
    %tq = transpose(%rq) {perm = [0,2,1,3]} %tk = transpose(%rk) {perm = [0,2,3,1]} %tv = transpose(%rv) {perm = [0,2,1,3]}
    %a = matmul(%tq, %tk) %p = softmax(%a) {axis = 3} %o = matmul(%p, %tv) return %o })";
  const std::string gated = "graph (%x: f32[16,128]) {\n" + coded("a", 1, 128, 256) + coded("b", 2, 128, 256) + R"(
    %a = matmul(%x, %wa) %g = sigmoid(%a) %s = mul(%a, %g) %b = matmul(%x, %wb) %y = mul(%s, %b) return %y })";
  for (const auto& [text, products] : {std::pair(attention, 3U), std::pair(gated, 2U)}) {
    const Compilation c = compiled(text, parse_target("cpu:avx2"));
    const auto told = of_pass(c.verdicts, "pack-codes");
    EXPECT_EQ(told.size(), products) << text;
    for (const ShapeVerdict& verdict : told)
      EXPECT_EQ(verdict.code(), "done") << verdict.nodes.at(0) << ": " << verdict.refused->message;
    expect_proven(c);
  }
}

/// Products that are not widened stay what they are.
TEST(PackedCodes, OfHalvesBecomeHalves) {
  CompilationOptions halves;
  halves.no_pass = {"widen-halves"};
  const Compilation c = compiled(R"(graph (%x: f16[2,96]) { %c = const rand<1> : i8[96,64] %s = const rand<2> : f16[64]
    %w = dequantize_linear(%c, %s) {axis = 1} %y = matmul(%x, %w) return %y })",
                                 parse_target("cpu:avx2"), halves);
  const auto told = of_pass(c.verdicts, "pack-codes");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].code(), "types");
  expect_proven(c);
}

}  // namespace
}  // namespace opfuse
