// Weights alone as codes: exact codes of small matrices, which products stay, and that the file says the same.
#include "quantize/code_weights.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/fail.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "onnx/read.hpp"
#include "onnx/write.hpp"
#include "ops/registry.hpp"
#include "quantize/agreement.hpp"
#include "quantize/block_codes.hpp"
#include "quantize/data_powers.hpp"

namespace opfuse::quantization {
namespace {

std::vector<int64_t> codes_of(const BlockCodes& made) {
  std::vector<int64_t> codes;
  for (int64_t i = 0; i < made.codes.elements(); ++i) codes.push_back(made.codes.integer(i));
  return codes;
}

std::vector<double> scales_of(const BlockCodes& made) {
  std::vector<double> scales;
  for (int64_t i = 0; i < made.scales.elements(); ++i) scales.push_back(made.scales.real(i));
  return scales;
}

double noise_of(const Tensor& column, double scale, double low, double high) {
  double noise = 0;
  for (int64_t i = 0; i < column.elements(); ++i) {
    const double code = std::min(std::max(std::nearbyint(column.real(i) / scale), low), high);
    noise += std::pow(column.real(i) - code * scale, 2);
  }
  return noise;
}

TEST(BlockCodes, OfGridNumbersAreExact) {
  // Blocks of 8 along 10 rows: the second has two rows, its second column is zeros.
  std::vector<double> w;
  for (int k = 0; k < 10; ++k) w.insert(w.end(), {k < 8 ? (k == 0 ? 7.0 : -k) : (k - 8) * 7.0, k < 8 ? k * 0.5 : 0.0});
  const BlockCodes made = block_codes(Tensor::of(DType::f32, {10, 2}, w), {DType::i4, 8, 0});
  EXPECT_EQ(made.scales.sizes(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(made.clipped, 0);
  EXPECT_THAT(scales_of(made)[1], 0.5);
  EXPECT_THAT(scales_of(made)[2], 1.0);
  EXPECT_THAT(scales_of(made)[3], 1.0);
  const std::vector<int64_t> codes = codes_of(made);
  for (size_t k = 0; k < 8; ++k) EXPECT_EQ(codes[2 * k + 1], static_cast<int64_t>(k));
  EXPECT_THAT(std::vector<int64_t>(codes.begin() + 16, codes.end()), testing::ElementsAre(0, 0, 7, 0));
}

TEST(BlockCodes, UseTheCodeBelowTheLargest) {
  const BlockCodes made = block_codes(Tensor::of<double>(DType::f32, {1, 4}, {-8, 7, 3, -1}), {DType::i4, 0, 1});
  EXPECT_THAT(codes_of(made), testing::ElementsAre(-8, 7, 3, -1));
  EXPECT_THAT(scales_of(made), testing::ElementsAre(1.0));
  EXPECT_TRUE(std::isinf(made.sqnr));
}

TEST(BlockCodes, ClipWhereThatCostsLess) {
  std::vector<double> w(32);
  for (size_t i = 0; i < w.size(); ++i) w[i] = std::sin(static_cast<double>(i));
  w[5] = 2;
  const Tensor column = Tensor::of(DType::f32, {32, 1}, w);
  const BlockCodes made = block_codes(column, {DType::i4, 0, 0});
  EXPECT_EQ(made.clipped, 1);
  const double noise = noise_of(column, made.scales.real(0), -8, 7);
  for (int clip = 0; clip < kClips; ++clip)
    EXPECT_LE(noise, noise_of(column, 2.0 / 7 * (1 - clip / 64.0), -8, 7) + 1e-6);
  EXPECT_LT(noise, 0.9 * noise_of(column, 2.0 / 7, -8, 7));
}

TEST(BlockCodes, DoNotDependOnThreadsAndLayout) {
  const Graph drawn = parse_graph("graph () { %w = const rand<3> : f32[45,70] return %w }", ops());
  const Tensor w = *drawn.outputs()[0]->constant;
  Tensor turned(DType::f32, {70, 45});
  for (int64_t k = 0; k < 45; ++k)
    for (int64_t n = 0; n < 70; ++n) turned.set_real(n * 45 + k, w.real(k * 70 + n));
  for (const auto& [type, block] : {std::pair(DType::i4, 16), std::pair(DType::i8, 0), std::pair(DType::i8, 32)}) {
    const BlockCodes one = block_codes(w, {type, block, 0, 1}), four = block_codes(w, {type, block, 0, 4}),
                     other = block_codes(turned, {type, block, 1, 2});
    EXPECT_TRUE(one.codes.same_bits(four.codes) && one.scales.same_bits(four.scales));
    for (int64_t k = 0; k < 45; ++k)
      for (int64_t n = 0; n < 70; ++n) ASSERT_EQ(one.codes.integer(k * 70 + n), other.codes.integer(n * 45 + k));
  }
}

TEST(BlockCodes, OfTheLargestAndSmallestFloats) {
  const double large = std::numeric_limits<float>::max(), tiny = 1e-44;
  const BlockCodes made =
      block_codes(Tensor::of<double>(DType::f32, {2, 2}, {large, tiny, -large, 0}), {DType::i8, 0, 0});
  EXPECT_THAT(codes_of(made), testing::ElementsAre(127, 0, -127, 0));
  EXPECT_TRUE(std::isfinite(made.scales.real(0)) && made.scales.real(1) > 0);
}

constexpr const char* kNet = R"(graph (%x: f32[3,100]) {
  %w = const rand<1> : f32[100,80] %v = const rand<2> : f32[96,80] %u = const rand<3> : f32[96,70] %s = const rand<4> : f32[70,8]
  %a = matmul(%x, %w) @"a"(MatMul@17) %b = gemm(%a, %v) {transB = true} @"b"(Gemm@17)
  %c = matmul(%b, %u) @"c"(MatMul@17) %d = matmul(%c, %s) @"d"(MatMul@17) return %d })";

TEST(CodeWeights, TheFileSaysTheSame) {
  for (const auto& [type, block, least] :
       {std::tuple{DType::i8, 0, 35.0}, std::tuple{DType::i8, 32, 35.0}, std::tuple{DType::i4, 32, 15.0}}) {
    SCOPED_TRACE(fmt::format("{} in blocks of {}", name_of(type), block));
    CodeWeightsOptions options;
    options.type = type, options.block = block;
    const CodedModel made = code_weights(parse_graph(kNet, ops()), options);
    ASSERT_EQ(made.products.size(), 3u);
    ASSERT_EQ(made.left.size(), 1u);
    EXPECT_EQ(made.left[0].why.code, "small_linear");
    EXPECT_LT(static_cast<double>(made.bytes_after),
              (type == DType::i4 ? 0.2 : 0.32) * static_cast<double>(made.bytes_before));
    const Graph read = read_onnx_bytes(write_onnx_bytes(made.graph));
    const std::vector<Tensor> inputs = random_inputs(read, {.seed = 5});
    const Tensor want = interpret(made.graph, inputs)[0], got = interpret(read, inputs)[0],
                 exact = interpret(made.reference, inputs)[0];
    EXPECT_EQ(difference(got, want).max_abs, 0);
    double signal = 0, noise = 0;
    for (int64_t i = 0; i < exact.elements(); ++i)
      signal += exact.real(i) * exact.real(i), noise += std::pow(exact.real(i) - got.real(i), 2);
    EXPECT_GT(10 * std::log10(signal / noise), least);
    EXPECT_GT(noise, 0);
  }
}

std::string code_left(const std::string& text, CodeWeightsOptions options = {}) {
  options.min_linear = 4;
  const CodedModel made =
      code_weights(parse_graph(fmt::format("graph (%x: f32[2,16], %i: i64[2]) {{ %g = const rand<9> : f32[16,16] {} "
                                           "%keep = matmul(%x, %g) @\"keep\"(MatMul@17) return %y, %keep }}",
                                           text),
                               ops()),
                   options);
  return made.left.size() == 1 ? made.left[0].why.code : fmt::format("{} left", made.left.size());
}

TEST(CodeWeights, SayWhyProductsStay) {
  EXPECT_EQ(code_left("%w = const splat<nan> : f32[16,16] %y = matmul(%x, %w)"), "not_finite");
  EXPECT_EQ(code_left("%w = const splat<inf> : f32[16,16] %y = matmul(%x, %w)"), "not_finite");
  EXPECT_EQ(code_left("%w = const rand<1> : f32[2,16,16] %y = matmul(%x, %w)"), "rank");
  EXPECT_EQ(code_left("%h = const rand<1> : f32[16,16] %n = neg(%h) %y = matmul(%x, %n)"), "variable_weights");
  EXPECT_EQ(code_left("%w = const rand<1> : f32[16,2] %y = matmul(%x, %w)"), "small_linear");
  EXPECT_EQ(code_left("%w = const rand<1> : f32[16,32] %y = matmul(%x, %w) @\"p\"(MatMul@17)", {.skip = {"p"}}),
            "skipped");
  EXPECT_EQ(code_left("%w = const rand<1> : f32[16,32] %y = matmul(%x, %w) @\"p\"(MatMul@17)", {.only = {"keep"}}),
            "skipped");
}

TEST(CodeWeights, TiedEmbeddingsStayAndTransposesDoNotMatter) {
  EXPECT_EQ(code_left(R"(%w = const rand<1> : f32[64,16] %t = transpose(%w) {perm = [1,0]} %e = gather(%w, %i)
    %z = matmul(%x, %t) @"z"(MatMul@17) %p = transpose(%e) {perm = [1,0]} %y = matmul(%z, %w))"),
            "2 left");
  EXPECT_EQ(code_left(R"(%w = const rand<1> : f32[64,16] %t = transpose(%w) {perm = [1,0]} %y = matmul(%x, %t))"),
            "0 left");
}

TEST(CodeWeights, RefuseWhatDoesNotApply) {
  CodeWeightsOptions options;
  options.block = 12;
  EXPECT_THROW(code_weights(parse_graph(kNet, ops()), options), Error);
  options.block = 0, options.skip = {"nowhere"};
  EXPECT_THROW(code_weights(parse_graph(kNet, ops()), options), Error);
  options.skip.clear();
  EXPECT_THROW(code_weights(parse_graph("graph (%x: f32[3]) { %y = neg(%x) return %y }", ops()), options), Error);
  EXPECT_THROW(parse_coded_weights("int2-weights"), Error);
}

/// Two of 64 channels are 40 times the others.
Samples loud_samples(size_t count, uint64_t seed) {
  return {.read = [=](size_t index) -> std::optional<std::vector<Tensor>> {
            if (index >= count) return std::nullopt;
            Tensor x(DType::f32, {1, 6, 64});
            for (int64_t i = 0; i < x.elements(); ++i) {
              const auto wave = std::sin(static_cast<double>(i * 31 + static_cast<int64_t>(seed + index) * 977 % 613));
              x.set_real(i, wave * (i % 64 == 5 || i % 64 == 40 ? 40 : 1));
            }
            return std::vector<Tensor>{x};
          },
          .count = count};
}

struct ByData {
  CodedModel plain, aware;
  double plain_sqnr = 0, aware_sqnr = 0;
};

ByData coded_by_data(const char* text, DType type = DType::i4, int64_t block = 32) {
  const Graph model = parse_graph(text, ops());
  const RunOptions runs{.threads = 1};
  const DataPowers powers = measure_powers(model, loud_samples(4, 0), runs);
  CodeWeightsOptions options{.type = type, .block = block, .threads = 1};
  ByData made{code_weights(model, options), {}};
  options.powers = &powers;
  made.aware = code_weights(model, options);
  const auto sqnr = [&](const CodedModel& m) {
    return measure_agreement(m.reference, m.graph, loud_samples(3, 50), runs).outputs[0].noise.sqnr();
  };
  made.plain_sqnr = sqnr(made.plain), made.aware_sqnr = sqnr(made.aware);
  return made;
}

size_t muls(const Graph& graph) {
  return static_cast<size_t>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                           [](const Node* node) { return node->op->name == "mul"; }));
}

TEST(CodeWeights, DataSayWhichErrorsCount) {
  const ByData made = coded_by_data(R"(graph (%x: f32[1,6,64]) {
    %w = const rand<1> : f32[64,128] %v = const rand<2> : f32[64,64]
    %a = matmul(%x, %w) @"a"(MatMul@17) %b = matmul(%x, %v) @"b"(MatMul@17) return %a, %b, %x })");
  EXPECT_GT(made.aware_sqnr, made.plain_sqnr + 3);
  EXPECT_EQ(muls(made.aware.graph), 1u);  // for both products; the output sees what it saw
  EXPECT_EQ(muls(made.plain.graph), 0u);
  ASSERT_EQ(made.aware.products.size(), 2u);
  for (const CodedProduct& p : made.aware.products) {
    EXPECT_GT(p.alpha, 0);
    EXPECT_GT(p.gain, 1);
    EXPECT_FALSE(p.folded);
  }
}

TEST(CodeWeights, FactorsOfDataFoldIntoTheNorm) {
  const char* text = R"(graph (%x: f32[1,6,64]) {
    %s = const rand<5> : f32[64] %t = const rand<6> : f32[64]
    %w = const rand<1> : f32[64,128] %v = const rand<2> : f32[128,64]
    %m = mul(%x, %s) @"m"(Mul@17) %p = add(%m, %t) @"p"(Add@17)
    %a = matmul(%p, %w) @"a"(MatMul@17) %r = relu(%a) %y = matmul(%r, %v) @"b"(MatMul@17) return %y })";
  const ByData made = coded_by_data(text);
  EXPECT_GT(made.aware_sqnr, made.plain_sqnr + 1);
  EXPECT_EQ(muls(made.aware.graph), muls(made.plain.graph));
  EXPECT_TRUE(made.aware.products[0].folded);
  // with codes of 8 bits the function is what it was
  EXPECT_GT(coded_by_data(text, DType::i8, 0).aware_sqnr, 35);
}

TEST(CodeWeights, WeightsOfOtherDataTooKeepTheirChannels) {
  const ByData made = coded_by_data(R"(graph (%x: f32[1,6,64]) {
    %w = const rand<1> : f32[64,64]
    %a = matmul(%x, %w) @"a"(MatMul@17) %r = relu(%a) %y = matmul(%r, %w) @"b"(MatMul@17) return %y })");
  for (const CodedProduct& p : made.aware.products) EXPECT_EQ(p.alpha, 0);
  EXPECT_EQ(made.aware.graph.nodes().size(), made.plain.graph.nodes().size());
}

}  // namespace
}  // namespace opfuse::quantization
