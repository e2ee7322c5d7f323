// torchvision's ViT-B/16: patches of 16x16 pixels, a class token, positions, 12 pre-norm encoder layers. Attention is
// torch.nn.MultiheadAttention as its exporter writes it: tokens first, one Linear whose result is sliced, scale on q.
#include <fmt/core.h>

#include <cmath>

#include "base/fail.hpp"
#include "zoo/attention_layers.hpp"
#include "zoo/models.hpp"

namespace opfuse {
namespace {

constexpr int64_t kHeads = 12, kPatch = 16;
constexpr double kEpsilon = 1e-6;

/// [batch, tokens, width] -> the same; inside [tokens, batch * heads, size]
Value* self_attention(Builder& b, Value* x, const std::string& module, int64_t tokens, int64_t width) {
  const std::string path = b.enter(module);
  const int64_t size = width / kHeads;
  Value* all = b.token_linear_at(path, b.transpose(path, x, {1, 0, 2}), module + ".in_proj", 3 * width);
  const auto part = [&](int64_t i) {
    Value* cut = b.slice(path, all, 2, i * width, (i + 1) * width);
    return b.reshape(path, cut, {tokens, -1, size});
  };
  Value *q = b.transpose(path, part(0), {1, 0, 2}), *k = b.transpose(path, part(1), {1, 2, 0});
  Value* v = b.transpose(path, part(2), {1, 0, 2});
  Value* scaled = b.at(path, "div", "Div", {q, b.number(path, std::sqrt(static_cast<double>(size)))});
  Value* y = matmul(b, path, softmax(b, path, matmul(b, path, scaled, k)), v);
  y = b.reshape(path, b.transpose(path, y, {1, 0, 2}), {-1, width});
  y = b.linear_at(path, y, module + ".out_proj", width);
  return b.transpose(path, b.reshape(path, y, {tokens, -1, width}), {1, 0, 2});
}

Value* encoder_layer(Builder& b, Value* x, const std::string& module, int64_t tokens, int64_t width) {
  Value* attended =
      self_attention(b, b.layer_norm(x, module + ".ln_1", kEpsilon), module + ".self_attention", tokens, width);
  const std::string path = b.enter(module);
  x = add(b, path, attended, x);
  Value* y =
      mlp(b, b.layer_norm(x, module + ".ln_2", kEpsilon), module + ".mlp.0", module + ".mlp.1", module + ".mlp.3");
  return add(b, path, x, y);
}

/// The class token once per image.
Value* class_tokens(Builder& b, Value* patches, int64_t width) {
  Value* token = b.uniform("class_token", {1, 1, width}, -0.5, 0.5);
  const Dim batch = patches->type.shape[0];
  if (batch.is_constant()) return b.at("", "expand", "Expand", {token, b.integers("", {batch.value(), 1, width})});
  Value* size = b.slice("", b.at("", "shape", "Shape", {patches}), 0, 0, 1);
  Value* shape = b.at("", "concat", "Concat", {size, b.integers("", {1, width})}, {{"axis", int64_t{0}}});
  return b.at("", "expand", "Expand", {token, shape});
}

}  // namespace

Graph build_vit_b_16(const ZooOptions& options) {
  Builder b("vit_b_16", options);
  Value* x = b.input(3, 224);
  const int64_t side = x->type.shape[2].value() / kPatch, width = kHeads * b.channels(64);
  if (side < 1 || x->type.shape[2].value() % kPatch != 0)
    throw fail(E::bad_option, "vit_b_16 needs a resolution that is a multiple of 16, not {}", x->type.shape[2].value());
  const int64_t tokens = side * side + 1;
  x = b.conv(x, "conv_proj", {.out = width, .kernel = kPatch, .stride = kPatch, .bias = true, .pad = 0, .gain = 1.0});
  x = b.transpose("", b.reshape("", x, {0, width, side * side}), {0, 2, 1});
  x = b.at("", "concat", "Concat", {class_tokens(b, x, width), x}, {{"axis", int64_t{1}}});
  x = add(b, b.enter("encoder"), x, b.uniform("encoder.pos_embedding", {1, tokens, width}, -0.5, 0.5));
  for (int i = 0; i < 12; ++i)
    x = encoder_layer(b, x, fmt::format("encoder.layers.encoder_layer_{}", i), tokens, width);
  x = b.layer_norm(x, "encoder.ln", kEpsilon);
  x = b.at("", "gather", "Gather", {x, b.parameter("/Constant_class", Tensor::from_i64({0}).reshaped({}))},
           {{"axis", int64_t{1}}});
  return b.finish(b.linear(x, "heads.head", b.classes(1000)));
}

}  // namespace opfuse
