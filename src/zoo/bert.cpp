// BERT-base as Hugging Face's export writes it: three embeddings, 12 post-norm layers with three Linears for queries,
// keys and values, the scale behind the product, an additive mask; the last hidden state and the pooled first token.
#include <fmt/core.h>

#include <cmath>

#include "zoo/attention_layers.hpp"
#include "zoo/models.hpp"

namespace opfuse {
namespace {

constexpr int64_t kHeads = 12, kTokens = 128, kPositions = 512;
constexpr double kEpsilon = 1e-12;

/// 0 where the mask is 1, -10000 where it is 0, for every row of scores
Value* additive_mask(Builder& b, Value* mask) {
  Value* wide = b.at("", "unsqueeze", "Unsqueeze", {mask, b.integers("", {1})});
  wide = b.at("", "unsqueeze", "Unsqueeze", {wide, b.integers("", {2})});
  wide = b.at("", "cast", "Cast", {wide}, {{"to", DType::f32}});
  return b.at("", "mul", "Mul", {b.at("", "sub", "Sub", {b.number("", 1), wide}), b.number("", -10000)});
}

Value* embeddings(Builder& b, Value* ids, Value* types, int64_t tokens, int64_t width) {
  const std::string module = "embeddings.";
  const auto looked_up = [&](const std::string& name, int64_t rows, Value* index) {
    Value* table = b.uniform(module + name + ".weight", {rows, width}, -1, 1);
    return b.at(b.enter(module + name), "gather", "Gather", {table, index}, {{"axis", int64_t{0}}});
  };
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < tokens; ++i) positions.push_back(i);
  const std::string path = b.enter("embeddings");
  const int64_t words = std::max<int64_t>(1, static_cast<int64_t>(30522 * std::min(1.0, b.options().width)));
  Value* x = add(b, path, looked_up("word_embeddings", words, ids), looked_up("token_type_embeddings", 2, types));
  Value* at = b.parameter("embeddings.position_ids", Tensor::from_i64(positions).reshaped({1, tokens}));
  x = add(b, path, x, looked_up("position_embeddings", std::max(kPositions, tokens), at));
  return b.layer_norm(x, module + "LayerNorm", kEpsilon);
}

Value* attention(Builder& b, Value* x, Value* mask, const std::string& module, int64_t tokens, int64_t width) {
  const std::string self = module + ".attention.self", path = b.enter(self);
  const int64_t size = width / kHeads;
  const auto heads = [&](const char* name) {
    return b.reshape(path, b.token_linear(x, self + "." + name, width), {0, tokens, kHeads, size});
  };
  Value *q = b.transpose(path, heads("query"), {0, 2, 1, 3}), *k = heads("key");
  Value* v = b.transpose(path, heads("value"), {0, 2, 1, 3});
  Value* scores = matmul(b, path, q, b.transpose(path, k, {0, 2, 3, 1}));
  scores = b.at(path, "div", "Div", {scores, b.number(path, std::sqrt(static_cast<double>(size)))});
  Value* y = matmul(b, path, softmax(b, path, add(b, path, scores, mask)), v);
  return b.reshape(path, b.transpose(path, y, {0, 2, 1, 3}), {0, tokens, width});
}

Value* layer(Builder& b, Value* x, Value* mask, const std::string& module, int64_t tokens, int64_t width) {
  const std::string output = module + ".attention.output";
  Value* attended = b.token_linear(attention(b, x, mask, module, tokens, width), output + ".dense", width);
  x = b.layer_norm(add(b, b.enter(output), attended, x), output + ".LayerNorm", kEpsilon);
  Value* y =
      mlp(b, x, module + ".intermediate.dense", module + ".intermediate.intermediate_act_fn", module + ".output.dense");
  return b.layer_norm(add(b, b.enter(module + ".output"), y, x), module + ".output.LayerNorm", kEpsilon);
}

}  // namespace

Graph build_bert_base(const ZooOptions& options) {
  Builder b("bert_base", options);
  const int64_t tokens = options.resolution > 0 ? options.resolution : kTokens, width = kHeads * b.channels(64);
  Value *ids = b.token_input("input_ids", tokens), *mask = b.token_input("attention_mask", tokens);
  Value* types = b.token_input("token_type_ids", tokens);
  Value* x = embeddings(b, ids, types, tokens, width);
  Value* added = additive_mask(b, mask);
  for (int i = 0; i < 12; ++i) x = layer(b, x, added, fmt::format("encoder.layer.{}", i), tokens, width);
  const std::string path = b.enter("pooler");
  Value* first = b.at(path, "gather", "Gather", {x, b.parameter("/pooler/first", Tensor::from_i64({0}).reshaped({}))},
                      {{"axis", int64_t{1}}});
  Value* pooled = b.op("tanh", "Tanh", {b.linear(first, "pooler.dense", width)}, "pooler.activation");
  return b.finish({{"last_hidden_state", x}, {"pooler_output", pooled}});
}

}  // namespace opfuse
