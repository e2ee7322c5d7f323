// Attention, RMSNormalization and RotaryEmbedding of opset 23: read as their bodies, they have the values of a plain
// loop, and recomposition names them again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fusion/prepared.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "onnx/model_bytes.hpp"
#include "opfuse/error.hpp"
#include "region/lower.hpp"
#include "shape/takes_movements.hpp"

namespace opfuse::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kBool = 9;
constexpr int64_t kBatch = 2, kQueries = 3, kSize = 4, kValueSize = 5;

struct Case {
  const char* name;
  int64_t q_heads = 2, kv_heads = 2, keys = 3, past = 0;
  bool flat = false;  ///< operands of three dimensions
  bool causal = false;
  double scale = 0, softcap = 0;  ///< 0: not given
  enum { none, added, boolean, short_mask } mask = none;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Strings dims(const std::vector<int64_t>& sizes) {
  Strings result;
  for (int64_t s : sizes) result.push_back(std::to_string(s));
  return result;
}

std::vector<int64_t> shape_of(const Case& c, int64_t heads, int64_t tokens, int64_t size) {
  return c.flat ? std::vector<int64_t>{kBatch, tokens, heads * size}
                : std::vector<int64_t>{kBatch, heads, tokens, size};
}

ModelBytes model_of(const Case& c) {
  const int64_t all = c.keys + c.past;
  Strings inputs{value_info("q", kFloat, dims(shape_of(c, c.q_heads, kQueries, kSize))),
                 value_info("k", kFloat, dims(shape_of(c, c.kv_heads, c.keys, kSize))),
                 value_info("v", kFloat, dims(shape_of(c, c.kv_heads, c.keys, kValueSize)))};
  Strings names{"q", "k", "v", "", "", ""}, attributes, outputs{"y"};
  if (c.mask != Case::none) {
    names[3] = "mask";
    const int64_t columns = c.mask == Case::short_mask ? all - 1 : all;
    inputs.push_back(value_info("mask", c.mask == Case::boolean ? kBool : kFloat, dims({kQueries, columns})));
  }
  if (c.past > 0) {
    names[4] = "pk", names[5] = "pv";
    inputs.push_back(value_info("pk", kFloat, dims({kBatch, c.kv_heads, c.past, kSize})));
    inputs.push_back(value_info("pv", kFloat, dims({kBatch, c.kv_heads, c.past, kValueSize})));
    outputs = {"y", "nk", "nv"};
  }
  while (names.back().empty()) names.pop_back();
  if (c.flat) {
    attributes.push_back(attribute("q_num_heads", c.q_heads));
    attributes.push_back(attribute("kv_num_heads", c.kv_heads));
  }
  if (c.causal) attributes.push_back(attribute("is_causal", int64_t{1}));
  if (c.scale > 0) attributes.push_back(real_attribute("scale", static_cast<float>(c.scale)));
  if (c.softcap > 0) attributes.push_back(real_attribute("softcap", static_cast<float>(c.softcap)));
  Strings infos;
  for (const std::string& name : outputs) infos.push_back(value_info(name, kFloat, {}));
  return {
      .graph = {.nodes = {node("Attention", names, outputs, attributes, "attn")}, .inputs = inputs, .outputs = infos},
      .ir = 10,
      .opset = 23};
}

/// Element (b, h, t, i) of an operand in either form; before `past` those of the cache.
struct Heads {
  const Tensor& x;
  const Tensor* past;
  int64_t heads, size;
  double operator()(int64_t b, int64_t h, int64_t t, int64_t i) const {
    const int64_t before = past ? past->dim(2) : 0;
    if (t < before) return past->real(((b * heads + h) * before + t) * size + i);
    t -= before;
    if (x.rank() == 3) return x.real((b * x.dim(1) + t) * heads * size + h * size + i);
    return x.real(((b * heads + h) * x.dim(2) + t) * size + i);
  }
};

double mask_at(const Case& c, const Tensor* mask, int64_t t, int64_t j) {
  if (c.causal && j > t + c.past) return -kInfinity;
  if (!mask) return 0;
  if (j >= mask->dim(1)) return -kInfinity;
  const int64_t at = t * mask->dim(1) + j;
  if (c.mask == Case::boolean) return mask->integer(at) != 0 ? 0 : -kInfinity;
  return mask->real(at);
}

/// y[b][h][t][i] by loops.
std::vector<double> loops(const Case& c, const std::vector<Tensor>& in) {
  const Tensor* mask = c.mask == Case::none ? nullptr : &in[3];
  const Heads q{in[0], nullptr, c.q_heads, kSize}, k{in[1], c.past ? &in[in.size() - 2] : nullptr, c.kv_heads, kSize},
      v{in[2], c.past ? &in.back() : nullptr, c.kv_heads, kValueSize};
  const int64_t all = c.keys + c.past, group = c.q_heads / c.kv_heads;
  const double scale = c.scale > 0 ? c.scale : 1 / std::sqrt(static_cast<double>(kSize));
  std::vector<double> y;
  for (int64_t b = 0; b < kBatch; ++b)
    for (int64_t h = 0; h < c.q_heads; ++h)
      for (int64_t t = 0; t < kQueries; ++t) {
        std::vector<double> w(static_cast<size_t>(all));
        double top = -kInfinity, sum = 0;
        for (int64_t j = 0; j < all; ++j) {
          double s = 0;
          for (int64_t i = 0; i < kSize; ++i) s += q(b, h, t, i) * k(b, h / group, j, i);
          s *= scale;
          if (c.softcap > 0) s = std::tanh(s / c.softcap) * c.softcap;
          w[static_cast<size_t>(j)] = s + mask_at(c, mask, t, j);
          top = std::max(top, w[static_cast<size_t>(j)]);
        }
        for (double& e : w) sum += e = top == -kInfinity ? 0 : std::exp(e - top);
        for (int64_t i = 0; i < kValueSize; ++i) {
          double r = 0;
          for (int64_t j = 0; j < all; ++j) r += w[static_cast<size_t>(j)] * v(b, h / group, j, i);
          y.push_back(sum > 0 ? r / sum : 0);
        }
      }
  return y;
}

std::vector<Tensor> inputs_of(const Graph& graph) {
  std::vector<Tensor> inputs = random_inputs(graph, {.seed = 3});
  for (Tensor& t : inputs)
    if (t.rank() == 2) {  // the mask: the second query has no key at all
      for (int64_t j = 0; j < t.dim(1); ++j) t.set_real(t.dim(1) + j, t.dtype() == DType::boolean ? 0 : -kInfinity);
      if (t.dtype() == DType::boolean)
        for (int64_t j = 0; j < t.dim(1); ++j) t.set_real(j, j != 1), t.set_real(2 * t.dim(1) + j, j != 0);
    }
  return inputs;
}

const Case kCases[] = {{.name = "plain"},
                       {.name = "flat", .flat = true},
                       {.name = "scaled", .scale = 0.3},
                       {.name = "softcap", .softcap = 0.7},
                       {.name = "causal", .causal = true},
                       {.name = "cross", .keys = 6},
                       {.name = "causal_cross", .keys = 2, .causal = true},
                       {.name = "mask", .mask = Case::added},
                       {.name = "mask_and_softcap", .softcap = 0.7, .mask = Case::added},
                       {.name = "boolean_mask", .mask = Case::boolean},
                       {.name = "boolean_mask_causal", .causal = true, .mask = Case::boolean},
                       {.name = "short_mask", .mask = Case::short_mask},
                       {.name = "grouped", .q_heads = 6, .kv_heads = 2},
                       {.name = "grouped_flat_mask", .q_heads = 6, .kv_heads = 2, .flat = true, .mask = Case::added},
                       {.name = "one_head_of_keys", .q_heads = 4, .kv_heads = 1, .flat = true},
                       {.name = "cache", .past = 2},
                       {.name = "cache_causal_grouped", .q_heads = 4, .kv_heads = 2, .past = 2, .causal = true}};

class AttentionOperator : public testing::TestWithParam<Case> {};

TEST_P(AttentionOperator, HasTheValuesOfLoopsAndIsOneModule) {
  const Case& c = GetParam();
  const Graph original = read_onnx_bytes(model_of(c).text());
  const Graph graph = prepared(original.clone());
  const FusionPlan plan = make_plan(graph);
  EXPECT_EQ(plan.module_counts()["FusedScaledDotProductAttention"], 1) << print(graph);
  const Graph fused = apply(graph, plan);
  for (const Node* node : fused.nodes())
    if (is_attention(*node)) {
      // what is one kernel on CPUs; rows without keys must not cost a stage
      const auto lowered = lower_group(*node);
      ASSERT_TRUE(std::holds_alternative<LoweredGroup>(lowered));
      EXPECT_EQ(std::get<LoweredGroup>(lowered).region.stages.size(), 3u);
    }
  const std::vector<Tensor> inputs = inputs_of(original);
  const std::vector<double> want = loops(c, inputs);
  for (const Graph* g : {&original, &graph}) {
    const std::vector<Tensor> got = interpret(*g, inputs);
    ASSERT_EQ(static_cast<size_t>(got[0].elements()), want.size());
    for (int64_t b = 0, n = 0; b < kBatch; ++b)
      for (int64_t h = 0; h < c.q_heads; ++h)
        for (int64_t t = 0; t < kQueries; ++t)
          for (int64_t i = 0; i < kValueSize; ++i, ++n)
            ASSERT_NEAR(Heads({got[0], nullptr, c.q_heads, kValueSize})(b, h, t, i), want[static_cast<size_t>(n)],
                        1e-6);
    if (c.past > 0) {
      EXPECT_EQ(got[1].dim(2), c.past + c.keys);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Opset23, AttentionOperator, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

/// Why the reader refuses, or leaves an operator (the one named so) opaque.
std::string refusal(const ModelBytes& model, const std::string& name = "") {
  try {
    const Graph graph = read_onnx_bytes(model.text());
    for (const Node* n : graph.nodes())
      if (n->is("opaque") && (name.empty() || n->name() == name))
        return static_cast<const OpaqueAttrs*>(n->attrs())->reason;
  } catch (const Error& error) {
    return error.diagnostic().message;
  }
  return "";
}

ModelBytes attention(const Strings& attributes, const Strings& more = {}) {
  ModelBytes m = model_of({.name = "", .flat = true});
  Strings operands{"q", "k", "v"}, given{attribute("q_num_heads", int64_t{2}), attribute("kv_num_heads", int64_t{2})};
  operands.insert(operands.end(), more.begin(), more.end());
  given.insert(given.end(), attributes.begin(), attributes.end());
  m.graph.inputs.push_back(value_info("n", kInt64, {"2"}));
  m.graph.nodes = {node("Attention", operands, {"y"}, given, "attn")};
  return m;
}

/// Their values are ONNX's own cases (tests/conformance).
TEST(AttentionOperatorReader, ReadsWindowsAndLengths) {
  EXPECT_EQ(refusal(attention({attribute("left_window_size", int64_t{3})})), "");
  EXPECT_EQ(refusal(attention({}, {"", "", "", "n"})), "");
}

TEST(AttentionOperatorReader, SaysWhatItDoesNotRead) {
  using testing::HasSubstr;
  EXPECT_EQ(refusal(attention({})), "");
  EXPECT_THAT(refusal(attention({}, {"", "n"})), HasSubstr("come together"));
  EXPECT_THAT(refusal(attention({real_attribute("scale", -1)})), HasSubstr("scale is -1"));
  EXPECT_THAT(refusal(attention({attribute("qk_matmul_output_mode", int64_t{7})})), HasSubstr("7"));
  EXPECT_THAT(refusal(attention({attribute("softmax_precision", int64_t{7})})), HasSubstr("INT64"));
  ModelBytes cached = attention({}, {"", "pk", "pv"});
  for (const char* name : {"pk", "pv"}) cached.graph.inputs.push_back(value_info(name, kFloat, {"2", "3", "8"}));
  EXPECT_THAT(refusal(cached), HasSubstr("four dimensions"));
  ModelBytes unranked = attention({}, {"", "pk", "pv"});
  for (const char* name : {"pk", "pv"})
    unranked.graph.nodes.insert(unranked.graph.nodes.begin(), node("SomethingUnknown", {"q"}, {name}, {}, name));
  EXPECT_THAT(refusal(unranked, "attn"), HasSubstr("rank of past_key"));
  ModelBytes m = attention({});
  m.graph.nodes = {node("Attention", {"q", "k", "v"}, {"y"}, {}, "attn")};
  EXPECT_THAT(refusal(m), HasSubstr("q_num_heads"));
}

TEST(AttentionOperatorReader, GivesTheProductAtEveryStage) {
  const Case c{.name = "", .causal = true, .softcap = 0.7};
  for (int64_t mode = 0; mode < 4; ++mode) {
    ModelBytes m = model_of(c);
    m.graph.nodes = {node(
        "Attention", {"q", "k", "v"}, {"y", "", "", "s"},
        {attribute("is_causal", int64_t{1}), real_attribute("softcap", 0.7F), attribute("qk_matmul_output_mode", mode)},
        "attn")};
    m.graph.outputs = {value_info("y", kFloat, {}), value_info("s", kFloat, {})};
    const Graph graph = read_onnx_bytes(m.text());
    const std::vector<Tensor> inputs = inputs_of(graph);
    const Tensor s = interpret(graph, inputs)[1];
    double raw = 0;
    for (int64_t i = 0; i < kSize; ++i) raw += inputs[0].real(i) * inputs[1].real(i) / 2;
    const double soft = std::tanh(raw / 0.7) * 0.7;
    const double first[] = {raw, soft, soft, 1};  // query 0 sees key 0 alone
    EXPECT_NEAR(s.real(0), first[mode], 1e-6) << mode;
    EXPECT_EQ(std::isinf(s.real(1)), mode == 2) << mode;
  }
}

/// x[2,3,8] and what RMSNormalization and RotaryEmbedding need.
ModelBytes one(const std::string& n, const Strings& extra, const Strings& x = {"2", "3", "8"}) {
  Strings inputs{value_info("x", kFloat, x)};
  inputs.insert(inputs.end(), extra.begin(), extra.end());
  return {.graph = {.nodes = {n}, .inputs = inputs, .outputs = {value_info("y", kFloat, {})}}, .ir = 10, .opset = 23};
}

TEST(RmsNormalization, HasTheValuesOfLoopsAndIsRecomposed) {
  ModelBytes m = one(node("RMSNormalization", {"x", "w"}, {"y"}, {real_attribute("epsilon", 1e-3F)}, "norm"), {});
  m.graph.initializers = {tensor("w", kFloat, {8}, floats({1, 2, 3, 4, 5, 6, 7, 8}))};
  const Graph original = read_onnx_bytes(m.text());
  const Graph graph = prepared(original.clone());
  ASSERT_EQ(graph.nodes().size(), 1u) << print(graph);
  EXPECT_EQ(operator_name(*graph.nodes()[0]), "rms_norm");
  const std::vector<Tensor> inputs = random_inputs(original);
  const Tensor y = interpret(graph, inputs)[0];
  for (int64_t row = 0; row < 6; ++row) {
    double squares = 0;
    for (int64_t i = 0; i < 8; ++i) squares += inputs[0].real(row * 8 + i) * inputs[0].real(row * 8 + i);
    for (int64_t i = 0; i < 8; ++i)
      EXPECT_NEAR(y.real(row * 8 + i),
                  inputs[0].real(row * 8 + i) / std::sqrt(squares / 8 + 1e-3) * static_cast<double>(i + 1), 1e-5);
  }
}

TEST(RmsNormalization, RefusesWhatOnnxDoesNotSay) {
  using testing::HasSubstr;
  const auto with = [](const std::string& a) {
    return one(node("RMSNormalization", {"x", "w"}, {"y"}, {a}, "norm"), {value_info("w", kFloat, {"8"})});
  };
  EXPECT_THAT(refusal(with(attribute("axis", int64_t{3}))), HasSubstr("axis is 3"));
  EXPECT_THAT(refusal(with(attribute("stash_type", int64_t{11}))), HasSubstr("stash_type"));
}

struct Rotation {
  bool flat, interleaved, positions;
  int64_t dim;  ///< of 8
};

double expected_rotation(const Rotation& r, const std::vector<Tensor>& in, int64_t b, int64_t h, int64_t t, int64_t i) {
  const Heads x{in[0], nullptr, 2, 8};
  if (i >= r.dim) return x(b, h, t, i);
  const int64_t half = r.dim / 2, pair = r.interleaved ? i / 2 : i % half;
  const bool second = r.interleaved ? i % 2 == 1 : i >= half;
  const int64_t a = r.interleaved ? 2 * pair : pair, z = r.interleaved ? a + 1 : pair + half;
  const int64_t row = r.positions ? in[3].integer(b * 3 + t) : b * 3 + t;
  const double c = in[1].real(row * half + pair), s = in[2].real(row * half + pair);
  return second ? s * x(b, h, t, a) + c * x(b, h, t, z) : c * x(b, h, t, a) - s * x(b, h, t, z);
}

TEST(RotaryEmbedding, TurnsPairsInEveryForm) {
  for (const Rotation r : {Rotation{false, false, false, 8},
                           {true, false, false, 8},
                           {false, true, false, 8},
                           {true, true, true, 8},
                           {false, false, true, 4},
                           {true, true, false, 4}}) {
    const std::string half = std::to_string(r.dim / 2);
    const Strings table = r.positions ? Strings{"7", half} : Strings{"2", "3", half};
    Strings names{"x", "c", "s"}, extra{value_info("c", kFloat, table), value_info("s", kFloat, table)};
    if (r.positions) names.push_back("p"), extra.push_back(value_info("p", kInt64, {"2", "3"}));
    Strings attributes{attribute("interleaved", int64_t{r.interleaved}), attribute("num_heads", int64_t{2})};
    if (r.dim != 8) attributes.push_back(attribute("rotary_embedding_dim", r.dim));
    const Strings shape = r.flat ? Strings{"2", "3", "16"} : Strings{"2", "2", "3", "8"};
    const Graph graph =
        read_onnx_bytes(one(node("RotaryEmbedding", names, {"y"}, attributes, "rope"), extra, shape).text());
    const std::vector<Tensor> inputs = random_inputs(graph);
    const Tensor y = interpret(graph, inputs)[0];
    ASSERT_EQ(y.sizes(), inputs[0].sizes());
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t t = 0; t < 3; ++t)
          for (int64_t i = 0; i < 8; ++i)
            ASSERT_NEAR(Heads({y, nullptr, 2, 8})(b, h, t, i), expected_rotation(r, inputs, b, h, t, i), 1e-6);
  }
}

}  // namespace
}  // namespace opfuse::test
