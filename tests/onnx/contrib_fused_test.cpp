// Operators that ONNX Runtime's optimiser writes (com.microsoft): each has the values of what it stands for, spelled by
// hand, and what is not computed is refused by name.
#include <gtest/gtest.h>

#include <cmath>

#include "interp/interpreter.hpp"
#include "model_bytes.hpp"
#include "onnx/read.hpp"
#include "ops/registry.hpp"

namespace opfuse::test {
namespace {

constexpr int64_t kU8 = 2, kI32 = 6;

struct Operand {
  std::string name;
  std::vector<int64_t> sizes;
  int64_t type = kFloat;
};

struct Case {
  std::string op;
  std::vector<Operand> operands;  ///< an empty name: absent
  Strings attributes;
  std::string body;  ///< of a text graph with the same operands, as %a, %b, ..
  Strings outputs = {"y"};
  std::string domain = "com.microsoft";
};

Tensor drawn(const Operand& o, size_t seed) {
  if (o.type == kI32) {
    Tensor t(DType::i32, o.sizes);
    for (int64_t i = 0; i < t.elements(); ++i) t.set_integer(i, (i + static_cast<int64_t>(seed)) % 3 > 0);
    return t;
  }
  Tensor t(DType::f32, o.sizes);
  for (int64_t i = 0; i < t.elements(); ++i)
    t.set_real(i, std::sin(static_cast<double>(7 * i) + 3 * static_cast<double>(seed)));
  return t;
}

Graph graph_of(const Case& c) {
  ModelBytes m;
  Strings names;
  for (const Operand& o : c.operands) {
    names.push_back(o.name);
    if (o.name.empty()) continue;
    Strings sizes;
    for (int64_t size : o.sizes) sizes.push_back(std::to_string(size));
    m.graph.inputs.push_back(value_info(o.name, o.type, sizes));
  }
  m.graph.nodes = {node(c.op, names, c.outputs, c.attributes, "n", c.domain)};
  for (const std::string& name : c.outputs)
    if (!name.empty()) m.graph.outputs.push_back(value_info(name, 0, {}));
  m.domains = {"com.microsoft"};
  return read_onnx_bytes(m.text());
}

std::string text_of(const Case& c) {
  std::string parameters;
  for (const Operand& o : c.operands) {
    if (o.name.empty()) continue;
    std::string sizes;
    for (int64_t size : o.sizes) sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
    parameters += (parameters.empty() ? "%" : ", %") + o.name + ": " + (o.type == kI32 ? "i32[" : "f32[") + sizes + "]";
  }
  return "graph (" + parameters + ") {\n" + c.body + "\n}";
}

void expect_the_same(const Case& c) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < c.operands.size(); ++i)
    if (!c.operands[i].name.empty()) inputs.push_back(drawn(c.operands[i], i));
  const std::vector<Tensor> got = interpret(graph_of(c), inputs, {}),
                            want = interpret(parse_graph(text_of(c), ops()), inputs, {});
  ASSERT_EQ(got.size(), want.size()) << c.op;
  for (size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].sizes(), want[k].sizes()) << c.op;
    for (int64_t i = 0; i < got[k].elements(); ++i) EXPECT_NEAR(got[k].real(i), want[k].real(i), 1e-5) << c.op << i;
  }
}

const Operand kX{"a", {2, 3, 4}}, kSkip{"b", {2, 3, 4}}, kRow{"c", {4}}, kOther{"d", {4}}, kThird{"e", {4}};

TEST(ContribFused, ActivationsAndProductsAreTheirParts) {
  const Operand image{"a", {1, 2, 5, 5}}, filters{"b", {3, 2, 3, 3}}, bias{"c", {3}}, sum{"d", {1, 3, 3, 3}};
  const Case cases[] = {
      {"Gelu", {kX}, {}, "%y = gelu(%a) return %y"},
      {"BiasGelu", {kX, kRow}, {}, "%s = add(%a, %c) %y = gelu(%s) return %y"},
      {"FastGelu", {kX, kRow}, {}, "%s = add(%a, %c) %y = gelu(%s) {form = \"tanh\"} return %y"},
      {"QuickGelu",
       {kX},
       {real_attribute("alpha", 0.5F)},
       "%h = const splat<0.5> : f32[] %m = mul(%a, %h) %g = sigmoid(%m) %y = mul(%a, %g) return %y"},
      {"FusedMatMul",
       {{"a", {2, 4, 3}}, {"b", {5, 4}}},
       {real_attribute("alpha", 0.5F), attribute("transA", int64_t{1}), attribute("transB", int64_t{1})},
       "%p = transpose(%a) {perm = [0, 2, 1]} %q = transpose(%b) {perm = [1, 0]} %m = matmul(%p, %q)"
       "%h = const splat<0.5> : f32[] %y = mul(%m, %h) return %y"},
      {"FusedMatMul",
       {{"a", {3, 2, 4}}, {"b", {5, 2, 4}}},
       {attribute("transBatchA", int64_t{1}), attribute("transBatchB", int64_t{1}), attribute("transB", int64_t{1})},
       "%p = transpose(%a) {perm = [1, 0, 2]} %q = transpose(%b) {perm = [1, 2, 0]} %y = matmul(%p, %q) return %y"},
      {"FusedGemm",
       {{"a", {3, 4}}, {"b", {4, 2}}, {"c", {2}}},
       {text_attribute("activation", "LeakyRelu"), real_attribute("activation_alpha", 0.25F),
        real_attribute("alpha", 2)},
       "%g = gemm(%a, %b, %c) {alpha = 2.0} %y = leaky_relu(%g) {alpha = 0.25} return %y"},
      {"FusedConv",
       {image, filters, bias, sum},
       {text_attribute("activation", "Relu")},
       "%v = conv(%a, %b, %c) %s = add(%v, %d) %y = relu(%s) return %y"},
  };
  for (const Case& c : cases) expect_the_same(c);
}

TEST(ContribFused, NormsKeepTheSumTheyNormalise) {
  const std::string rms =
      "%q = mul(%s, %s) %ax = const dense<2> : i64[1] %m = reduce_mean(%q, %ax) %e = const splat<0.5> : f32[] %v = "
      "add(%m, %e)"
      "%r = sqrt(%v) %n = div(%s, %r) %y = mul(%n, %c)";
  const std::string epsilon = real_attribute("epsilon", 0.5F);
  const Case cases[] = {
      {"SkipLayerNormalization",
       {kX, kSkip, kRow, kOther, kThird},
       {epsilon},
       "%t = add(%a, %e) %s = add(%t, %b) %y = layer_norm(%s, %c, %d) {epsilon = 0.5} return %y, %s",
       {"y", "", "", "s"}},
      {"SkipSimplifiedLayerNormalization",
       {kX, kSkip, kRow},
       {epsilon},
       "%s = add(%a, %b) " + rms + " return %y, %s",
       {"y", "", "", "s"}},
      {"SimplifiedLayerNormalization", {kX, kRow}, {epsilon}, "%s = identity(%a) " + rms + " return %y", {"y"}, ""},
  };
  for (const Case& c : cases) expect_the_same(c);
}

TEST(ContribFused, FormsOfOperatorsThatOnnxHasItself) {
  const Operand rows{"a", {3, 4}}, others{"b", {5, 4}};
  const std::string apart =
      "%i = const dense<1> : i64[1] %j = const dense<0> : i64[1] %l = const dense<-1> : i64[1] %u = unsqueeze(%a, %i)"
      "%v = unsqueeze(%b, %j) %d = sub(%u, %v) %y = ";
  const Case cases[] = {
      {"ExpandDims", {kX, {"b", {}, kI32}}, {}, "%i = const dense<1> : i64[1] %y = unsqueeze(%a, %i) return %y"},
      {"Trilu", {kX}, {attribute("upper", int64_t{0})}, "%y = trilu(%a) {upper = false} return %y"},
      {"CDist",
       {rows, others},
       {text_attribute("metric", "euclidean")},
       apart + "reduce_l2(%d, %l) {keepdims = false} return %y"},
      {"CDist", {rows, others}, {}, apart + "reduce_sum_square(%d, %l) {keepdims = false} return %y"},
      {"NhwcMaxPool",
       {{"a", {1, 6, 4, 2}}},
       {attribute("kernel_shape", std::vector<int64_t>{2, 2}), attribute("strides", std::vector<int64_t>{2, 2})},
       "%t = transpose(%a) {perm = [0, 3, 1, 2]} %m = max_pool(%t) {kernel_shape = [2, 2], strides = [2, 2]}"
       "%y = transpose(%m) {perm = [0, 2, 3, 1]} return %y"},
      {"BiasSoftmax",
       {kX, {"b", {2, 1, 4}}},
       {attribute("axis", int64_t{-1})},
       "%s = add(%a, %b) %y = softmax(%s) {axis = 2} return %y"},
      {"BiasAdd", {kX, kRow, kSkip}, {}, "%s = add(%a, %c) %y = add(%s, %b) return %y"},
      {"BiasSplitGelu",
       {kX, kRow},
       {},
       "%s = add(%a, %c) %l, %r = split(%s) {axis = 2, num_outputs = 2} %g = gelu(%r) %y = mul(%l, %g) return %y"},
  };
  for (const Case& c : cases) expect_the_same(c);
}

TEST(ContribFused, GroupNormsHaveTheirChannelsLast) {
  const Operand image{"a", {2, 3, 3, 4}}, skip{"b", {2, 4}};
  const Strings attributes{attribute("groups", int64_t{2}), attribute("activation", int64_t{1}),
                           real_attribute("epsilon", 0.5F)};
  const std::string norm =
      "%t = transpose(%s) {perm = [0, 3, 1, 2]} %n = group_norm(%t, %c, %d) {num_groups = 2, epsilon = 0.5}"
      "%z = transpose(%n) {perm = [0, 2, 3, 1]} %y = silu(%z) return %y";
  expect_the_same({"GroupNorm", {image, kRow, kOther}, attributes, "%s = identity(%a) " + norm});
  expect_the_same(
      {"SkipGroupNorm",
       {image, kRow, kOther, skip, kThird},
       attributes,
       "%i = const dense<1, 2> : i64[2] %k = unsqueeze(%b, %i) %p = add(%a, %k) %s = add(%p, %e) " + norm + ", %s",
       {"y", "s"}});
}

TEST(ContribFused, EmbeddingsAreSummedAndTheMaskIsCounted) {
  const Operand ids{"a", {2, 3}, kI32}, segments{"b", {2, 3}, kI32}, words{"c", {5, 4}}, positions{"d", {6, 4}},
      kinds{"e", {2, 4}}, mask{"h", {2, 3}, kI32};
  expect_the_same({"EmbedLayerNormalization",
                   {ids, segments, words, positions, kinds, {"f", {4}}, {"g", {4}}, mask},
                   {real_attribute("epsilon", 0.5F)},
                   "%w = gather(%c, %a) %i = const dense<0, 1, 2> : i64[3] %p = gather(%d, %i) %u = add(%w, %p)"
                   "%k = gather(%e, %b) %s = add(%u, %k) %y = layer_norm(%s, %f, %g) {epsilon = 0.5}"
                   "%ax = const dense<1> : i64[1] %n = reduce_sum(%h, %ax) {keepdims = false} return %y, %n, %s",
                   {"y", "n", "s"}});
}

/// Two heads of two elements; q, k and v are the columns of one product.
TEST(ContribFused, AttentionIsSpelledWithItsMask) {
  const std::string heads =
      "%h4 = const dense<1, 3, 2, 2> : i64[4] %q3 = reshape(%a1, %h4) %q = transpose(%q3) {perm = [0, 2, 1, 3]}"
      "%k3 = reshape(%b1, %h4) %k = transpose(%k3) {perm = [0, 2, 3, 1]}"
      "%v3 = reshape(%c1, %h4) %v = transpose(%v3) {perm = [0, 2, 1, 3]}"
      "%r = matmul(%q, %k) %f = const splat<0.70710678> : f32[] %t = mul(%r, %f)";
  const std::string masked =
      "%one = const splat<1.0> : f32[] %far = const splat<-10000.0> : f32[] %s4 = const dense<1, 1, 1, 3> : i64[4] "
      "%m4 = reshape(%m, %s4)"
      "%mf = cast(%m4) {to = f32} %hidden = sub(%one, %mf) %bias = mul(%hidden, %far) %z = add(%t, %bias)";
  const std::string behind =
      "%w = softmax(%z) {axis = -1} %o = matmul(%w, %v) %o3 = transpose(%o) {perm = [0, 2, 1, 3]}"
      "%s3 = const dense<1, 3, 4> : i64[3] %y = reshape(%o3, %s3) return %y";
  const Operand mask{"m", {1, 3}, kI32}, none{};
  const std::string two = attribute("num_heads", int64_t{2});
  expect_the_same({"Attention",
                   {{"a", {1, 3, 4}}, {"b", {4, 12}}, {"c", {12}}, mask},
                   {two},
                   "%l = matmul(%a, %b) %d = add(%l, %c) %a1, %b1, %c1 = split(%d) {axis = -1, num_outputs = 3}" +
                       heads + masked + behind});
  const Operand q{"a1", {1, 3, 4}}, k{"b1", {1, 3, 4}}, v{"c1", {1, 3, 4}};
  expect_the_same({"MultiHeadAttention", {q, k, v, none, mask}, {two}, heads + masked + behind});
}

/// The lowest bits first, rows of zero points from a byte on, and a last block that is not full.
TEST(ContribFused, PackedWeightsAreCodesWithAScaleForEachBlock) {
  constexpr int64_t kColumns = 2, kDepth = 40, kBlock = 16, kBlocks = 3;
  std::string bytes, zeros{"\x21\x03\x54\x06", 4};
  for (int64_t i = 0; i < kColumns * kBlocks * kBlock / 2; ++i) bytes += static_cast<char>((37 * i + 11) % 256);
  std::vector<float> scales;
  for (int64_t i = 0; i < kColumns * kBlocks; ++i) scales.push_back(0.25F * static_cast<float>(i + 1));
  ModelBytes m;
  m.graph.nodes = {node("MatMulNBits", {"x", "b", "s", "z"}, {"y"},
                        {attribute("K", kDepth), attribute("N", kColumns), attribute("bits", int64_t{4}),
                         attribute("block_size", kBlock)},
                        "n", "com.microsoft")};
  m.graph.initializers = {tensor("b", kU8, {kColumns, kBlocks, kBlock / 2}, bytes),
                          tensor("s", kFloat, {kColumns * kBlocks}, floats(scales)), tensor("z", kU8, {4}, zeros)};
  m.graph.inputs = {value_info("x", kFloat, {"1", std::to_string(kDepth)})};
  m.graph.outputs = {value_info("y", kFloat, {})};
  m.domains = {"com.microsoft"};
  const Tensor x = drawn({"x", {1, kDepth}}, 0);
  const Tensor y = interpret(read_onnx_bytes(m.text()), {x}, {}).at(0);
  const int zero[kColumns][kBlocks] = {{1, 2, 3}, {4, 5, 6}};
  for (int64_t n = 0; n < kColumns; ++n) {
    double sum = 0;
    for (int64_t k = 0; k < kDepth; ++k) {
      const auto byte = static_cast<unsigned char>(bytes[static_cast<size_t>(n * kBlocks * kBlock / 2 + k / 2)]);
      const int code = k % 2 ? byte >> 4 : byte & 15;
      sum += x.real(k) * (code - zero[n][k / kBlock]) *
             static_cast<double>(scales[static_cast<size_t>(n * kBlocks + k / kBlock)]);
    }
    EXPECT_NEAR(y.real(n), sum, 1e-4);
  }
}

/// Zero points between codes, and rows whose blocks are in an order of their own: neither has a spelling as codes.
TEST(ContribFused, PackedWeightsWithZeroPointsThatAreNumbersAndAnOrder) {
  const float zero[] = {1.5F, 3}, scale[] = {0.5F, 2};
  const int64_t order[] = {1, 0, 0, 1};
  const std::string codes{"\x05\xff\x00\x13", 4};
  for (const bool ordered : {false, true}) {
    ModelBytes m;
    m.graph.nodes = {node("MatMulNBits", {"x", "b", "s", "z", ordered ? "g" : ""}, {"y"},
                          {attribute("K", int64_t{4}), attribute("N", int64_t{1}), attribute("bits", int64_t{8}),
                           attribute("block_size", int64_t{2})},
                          "n", "com.microsoft")};
    m.graph.initializers = {tensor("b", kU8, {1, 2, 2}, codes), tensor("s", kFloat, {2}, floats({scale[0], scale[1]})),
                            tensor("z", kFloat, {2}, floats({zero[0], zero[1]})),
                            tensor("g", 7, {4}, integers({1, 0, 0, 1}))};
    m.graph.inputs = {value_info("x", kFloat, {"1", "4"})};
    m.graph.outputs = {value_info("y", kFloat, {})};
    m.domains = {"com.microsoft"};
    const Tensor x = drawn({"x", {1, 4}}, 0);
    double sum = 0;
    for (int64_t k = 0; k < 4; ++k) {
      const int64_t block = ordered ? order[k] : k / 2;
      sum += x.real(k) * (static_cast<unsigned char>(codes[static_cast<size_t>(k)]) - zero[block]) * scale[block];
    }
    EXPECT_NEAR(interpret(read_onnx_bytes(m.text()), {x}, {}).at(0).real(0), sum, 1e-4) << ordered;
  }
}

TEST(ContribFused, RefusesWhatItDoesNotCompute) {
  const std::string two = attribute("num_heads", int64_t{2});
  const Case cases[] = {
      {"SkipLayerNormalization", {kX, kSkip, kRow}, {}, "", {"y", "mean"}},
      {"MultiHeadAttention", {kX}, {two}, ""},
      {"Attention", {kX, {"b", {4, 12}}, {}, {"m", {5}, kI32}}, {two}, ""},
  };
  for (const Case& c : cases) {
    try {
      EXPECT_EQ(graph_of(c).nodes().back()->op->name, "opaque") << c.op;
    } catch (const Error& error) {
      EXPECT_FALSE(error.diagnostic().message.empty());
      EXPECT_NE(error.diagnostic().name, "internal") << c.op;
    }
  }
}

}  // namespace
}  // namespace opfuse::test
