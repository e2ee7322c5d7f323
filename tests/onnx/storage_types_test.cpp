// Types of a byte and less in files: packed constants, casts that saturate, quantisation in blocks.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interp/interpreter.hpp"
#include "onnx/model_bytes.hpp"
#include "onnx/read.hpp"
#include "onnx/tensor_files.hpp"
#include "onnx/tensor_proto.hpp"
#include "onnx/write.hpp"
#include "ops/registry.hpp"
#include "ops/run_op.hpp"

namespace opfuse::test {
namespace {

constexpr int64_t kF8 = 17, kInt4 = 22, kF4 = 23, kInt2 = 26, kE8m0 = 24;

std::vector<double> values_of(const Tensor& t) {
  std::vector<double> values;
  for (int64_t i = 0; i < t.elements(); ++i) values.push_back(t.real(i));
  return values;
}

std::vector<double> run(const Graph& graph, const std::vector<Tensor>& inputs = {}) {
  verify(graph);
  return values_of(interpret(graph, inputs, {.precision = Precision::typed})[0]);
}

TEST(StorageTypes, PackedConstantsHaveAByteForEachElement) {
  ModelBytes model{.graph = {.nodes = {node("Cast", {"w"}, {"y"}, {attribute("to", kFloat)})},
                             .initializers = {tensor("w", kInt4, {5}, "\x87\x0f\x03")},
                             .outputs = {value_info("y", kFloat, {"5"})}},
                   .opset = 21};
  const std::vector<double> wanted{7, -8, -1, 0, 3};
  const Graph graph = read_onnx_bytes(model.text());
  EXPECT_EQ(run(graph), wanted);
  EXPECT_EQ(run(read_onnx_bytes(write_onnx_bytes(graph))), wanted);
}

TEST(StorageTypes, WrittenTensorsArePackedAgain) {
  Tensor t(DType::i2, {5});
  for (int i = 0; i < 5; ++i) t.set_integer(i, i % 4 - 2);
  onnx::Encoder encoded;
  onnx::encode_tensor(t, "t", encoded);
  const std::string text = encoded.text();
  const onnx::TensorProto proto = onnx::parse_tensor(text);
  EXPECT_EQ(proto.data_type, kInt2);
  EXPECT_EQ(proto.raw_data->size(), 2u);
  EXPECT_TRUE(onnx::TensorReader(nullptr, {}, {}).read(proto, "t").same_bits(t));
}

TEST(StorageTypes, TooFewPackedBytesAreRefused) {
  ModelBytes model{.graph = {.nodes = {node("Identity", {"w"}, {"y"})},
                             .initializers = {tensor("w", kF4, {5}, "\x01\x02")},
                             .outputs = {value_info("y", kF4, {"5"})}},
                   .opset = 23};
  EXPECT_EQ(error_of([&] { read_onnx_bytes(model.text()); }), "bad_initializer");
}

Graph cast_to(int64_t to, const Strings& attributes = {}) {
  Strings all{attribute("to", to)};
  all.insert(all.end(), attributes.begin(), attributes.end());
  return read_onnx_bytes(ModelBytes{
      .graph = {.nodes = {node("Cast", {"x"}, {"c"}, all), node("Cast", {"c"}, {"y"}, {attribute("to", kFloat)})},
                .inputs = {value_info("x", kFloat, {"4"})},
                .outputs = {value_info("y", kFloat, {"4"})}},
      .opset = 24}
                             .text());
}

TEST(StorageTypes, CastsSaturateUnlessToldNotTo) {
  const std::vector<Tensor> x{reals(DType::f32, {1e4, -1e4, 17, 0.3})};
  EXPECT_THAT(run(cast_to(kF8), x), testing::ElementsAre(448, -448, 16, 0.3125));
  EXPECT_THAT(run(cast_to(kF8, {attribute("saturate", int64_t{0})}), x),
              testing::ElementsAre(testing::IsNan(), testing::IsNan(), 16, 0.3125));
  const Graph graph = cast_to(kF8);
  EXPECT_EQ(run(read_onnx_bytes(write_onnx_bytes(graph)), x), run(graph, x));
}

TEST(StorageTypes, ExponentsRoundAsTheyAreTold) {
  const std::vector<Tensor> x{reals(DType::f32, {3, 5, -2, 0.25})};
  EXPECT_THAT(run(cast_to(kE8m0), x), testing::ElementsAre(4, 8, 2, 0.25));
  EXPECT_THAT(run(cast_to(kE8m0, {text_attribute("round_mode", "down")}), x), testing::ElementsAre(2, 4, 2, 0.25));
  EXPECT_THAT(run(cast_to(kE8m0, {text_attribute("round_mode", "nearest")}), x), testing::ElementsAre(4, 4, 2, 0.25));
}

/// Beyond 1024 elements, beside the file too: 41 columns end inside a byte.
TEST(StorageTypes, WeightsOfFourAndTwoBitsArePackedInFiles) {
  for (const char* type : {"i4", "u4", "i2", "u2"}) {
    SCOPED_TRACE(type);
    const Graph graph = parse_graph(fmt::format(R"(graph (%x: f32[2,41]) {{ %c = const rand<1> : {}[41,41]
      %s = const splat<0.5> : f32[] %w = dequantize_linear(%c, %s) %y = matmul(%x, %w) return %y }})",
                                                type),
                                    ops());
    const auto codes = [](const Graph& g) { return g.nodes().front()->input(0)->constant->to_i64(); };
    const std::vector<int64_t> wanted = codes(graph);
    const std::string bytes = write_onnx_bytes(graph);
    EXPECT_LT(bytes.size(), 41u * 41 / (type[1] == '4' ? 2 : 4) + 1000);
    EXPECT_EQ(codes(read_onnx_bytes(bytes)), wanted);
    const std::string path = testing::TempDir() + "packed_" + type + ".onnx";
    write_onnx(graph, path, {.max_file_bytes = 0});
    EXPECT_EQ(codes(read_onnx(path)), wanted);
  }
}

TEST(StorageTypes, BlocksHaveScalesOfTheirOwn) {
  const AttrMap attrs{{"axis", int64_t{1}}, {"block_size", int64_t{2}}};
  const Tensor x = reals(DType::f32, {1, 2, 30, 8, 5, 60}).reshaped({2, 3});
  const Tensor scale = reals(DType::f32, {1, 10, 2, 20}).reshaped({2, 2});
  const Tensor q = run_op("quantize_linear",
                          {{"axis", int64_t{1}}, {"block_size", int64_t{2}}, {"output_dtype", DType::i4}}, {x, scale});
  EXPECT_EQ(q.to_i64(), (std::vector<int64_t>{1, 2, 3, 4, 2, 3}));
  EXPECT_EQ(values_of(run_op("dequantize_linear", attrs, {q, scale})), (std::vector<double>{1, 2, 30, 8, 4, 60}));
  EXPECT_EQ(error_of([&] { infer_op("dequantize_linear", attrs, {q, reals(DType::f32, {1, 2})}); }), "rank_mismatch");
}

TEST(StorageTypes, ArraysOfNumpyAreWider) {
  Tensor f8(DType::f8e5m2, {2});
  f8.set_real(1, 1.5);
  EXPECT_TRUE(parse_npy(encode_npy(f8), "f8").same_bits(reals(DType::f32, {0, 1.5})));
  Tensor i4(DType::i4, {2});
  i4.set_integer(1, -3);
  EXPECT_TRUE(parse_npy(encode_npy(i4), "i4").same_bits(integers(DType::i8, {0, -3})));
}

TEST(StorageTypes, BitsAreKept) {
  const AttrMap attrs{{"from", DType::f32}, {"to", DType::u32}};
  for (Precision precision : {Precision::typed, Precision::exact})
    EXPECT_EQ(run_op("bit_cast", attrs, {reals(DType::f32, {1.5, -0.0})}, precision).to_i64(),
              (std::vector<int64_t>{0x3fc00000, 0x80000000}));
  EXPECT_EQ(error_of([] {
              infer_op("bit_cast", {{"from", DType::f32}, {"to", DType::i8}}, {reals(DType::f32, {1})});
            }),
            "dtype_mismatch");
}

}  // namespace
}  // namespace opfuse::test
