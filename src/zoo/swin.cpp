// torchvision's Swin-T: attention inside windows of 7x7 tokens; in every second block the windows are shifted by half,
// which is written as a roll (Slice and Concat), and a mask keeps apart what the roll brought together. Between stages
// 2x2 tokens are merged. A window is a 32nd of the resolution wide (7 at 224), so windows always fit.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/fail.hpp"
#include "zoo/attention_layers.hpp"
#include "zoo/models.hpp"

namespace opfuse {
namespace {

constexpr double kEpsilon = 1e-5;

struct Windows {
  int64_t side, window, shift, channels, heads;  ///< of the map, of a window; by how much it is shifted
  int64_t across() const { return side / window; }
  int64_t tokens() const { return window * window; }
};

/// torch.roll along one axis: what lies before `from` goes to the end.
Value* roll(Builder& b, const std::string& path, Value* x, int64_t axis, int64_t from) {
  Value* tail = b.slice(path, x, axis, from, std::numeric_limits<int64_t>::max());
  Value* head = b.slice(path, x, axis, 0, from);
  return b.at(path, "concat", "Concat", {tail, head}, {{"axis", axis}});
}

/// -100 between tokens of one window that were not neighbours before the roll.
Tensor shift_mask(const Windows& w) {
  const auto region = [&](int64_t at) { return at < w.side - w.window ? 0 : at < w.side - w.shift ? 1 : 2; };
  const auto place = [&](int64_t window, int64_t token) {
    const int64_t y = window / w.across() * w.window + token / w.window;
    const int64_t x = window % w.across() * w.window + token % w.window;
    return 3 * region(y) + region(x);
  };
  const int64_t n = w.tokens(), count = w.across() * w.across();
  Tensor mask(DType::f32, {1, count, 1, n, n});
  for (int64_t i = 0; i < mask.elements(); ++i) {
    const int64_t window = i / (n * n);
    mask.set_real(i, place(window, i / n % n) == place(window, i % n) ? 0 : -100);
  }
  return mask;
}

/// [windows, tokens, channels] -> the same
Value* window_attention(Builder& b, const std::string& path, Value* x, const std::string& module, const Windows& w) {
  const int64_t n = w.tokens(), size = w.channels / w.heads;
  Value* all = b.token_linear_at(path, x, module + ".qkv", 3 * w.channels);
  all = b.transpose(path, b.reshape(path, all, {-1, n, 3, w.heads, size}), {2, 0, 3, 1, 4});
  const auto part = [&](int64_t i) {
    Value* index = b.parameter(fmt::format("{}/index_{}", path, i), Tensor::from_i64({i}).reshaped({}));
    return b.at(path, "gather", "Gather", {all, index}, {{"axis", int64_t{0}}});
  };
  Value *q = part(0), *k = part(1), *v = part(2);
  q = b.at(path, "mul", "Mul", {q, b.number(path, 1 / std::sqrt(static_cast<double>(size)))});
  Value* scores = matmul(b, path, q, b.transpose(path, k, {0, 1, 3, 2}));
  scores = add(b, path, scores, b.uniform(module + ".relative_position_bias", {1, w.heads, n, n}, -0.5, 0.5));
  if (w.shift > 0) {
    const int64_t count = w.across() * w.across();
    scores = b.reshape(path, scores, {-1, count, w.heads, n, n});
    scores = add(b, path, scores, b.parameter(path + "/attn_mask", shift_mask(w)));
    scores = b.reshape(path, scores, {-1, w.heads, n, n});
  }
  Value* y = matmul(b, path, softmax(b, path, scores), v);
  y = b.reshape(path, b.transpose(path, y, {0, 2, 1, 3}), {-1, n, w.channels});
  return b.token_linear_at(path, y, module + ".proj", w.channels);
}

/// [batch, side, side, channels] -> the same
Value* shifted_window_attention(Builder& b, Value* x, const std::string& module, const Windows& w) {
  const std::string path = b.enter(module);
  if (w.shift > 0) x = roll(b, path, roll(b, path, x, 1, w.shift), 2, w.shift);
  const std::vector<int64_t> apart{-1, w.across(), w.window, w.across(), w.window, w.channels};
  x = b.transpose(path, b.reshape(path, x, apart), {0, 1, 3, 2, 4, 5});
  x = window_attention(b, path, b.reshape(path, x, {-1, w.tokens(), w.channels}), module, w);
  x = b.reshape(path, x, {-1, w.across(), w.across(), w.window, w.window, w.channels});
  x = b.reshape(path, b.transpose(path, x, {0, 1, 3, 2, 4, 5}), {-1, w.side, w.side, w.channels});
  if (w.shift > 0) x = roll(b, path, roll(b, path, x, 1, -w.shift), 2, -w.shift);
  return x;
}

Value* block(Builder& b, Value* x, const std::string& module, const Windows& w) {
  const std::string path = b.enter(module);
  Value* y = shifted_window_attention(b, b.layer_norm(x, module + ".norm1", kEpsilon), module + ".attn", w);
  x = add(b, path, x, y);
  y = mlp(b, b.layer_norm(x, module + ".norm2", kEpsilon), module + ".mlp.0", module + ".mlp.1", module + ".mlp.3");
  return add(b, path, x, y);
}

/// 2x2 tokens become one of twice the width.
Value* merge_patches(Builder& b, Value* x, const std::string& module, int64_t width) {
  const std::string path = b.enter(module);
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  std::vector<Value*> parts;
  for (int64_t i = 0; i < 4; ++i)
    parts.push_back(b.slice(path, b.slice(path, x, 1, i % 2, kEnd, 2), 2, i / 2, kEnd, 2));
  Value* y = b.at(path, "concat", "Concat", parts, {{"axis", int64_t{-1}}});
  return b.token_linear(b.layer_norm(y, module + ".norm", kEpsilon), module + ".reduction", width, 1.0, false);
}

}  // namespace

Graph build_swin_t(const ZooOptions& options) {
  constexpr int64_t kDepths[] = {2, 2, 6, 2};
  Builder b("swin_t", options);
  Value* x = b.input(3, 224);
  const int64_t resolution = x->type.shape[2].value(), unit = b.channels(32);
  if (resolution < 32 || resolution % 32 != 0)
    throw fail(E::bad_option, "swin_t needs a resolution that is a multiple of 32, not {}", resolution);
  Windows w{resolution / 4, resolution / 32, 0, 3 * unit, 3};
  x = b.conv(x, "features.0.0", {.out = w.channels, .kernel = 4, .stride = 4, .bias = true, .pad = 0, .gain = 1.0});
  x = b.layer_norm(b.transpose(b.enter("features.0.1"), x, {0, 2, 3, 1}), "features.0.2", kEpsilon);
  for (int64_t stage = 0; stage < 4; ++stage) {
    if (stage > 0) {
      w = {w.side / 2, w.window, 0, 2 * w.channels, 2 * w.heads};
      x = merge_patches(b, x, fmt::format("features.{}", 2 * stage), w.channels);
    }
    for (int64_t i = 0; i < kDepths[stage]; ++i) {
      w.shift = i % 2 == 1 && w.side > w.window ? w.window / 2 : 0;
      x = block(b, x, fmt::format("features.{}.{}", 2 * stage + 1, i), w);
    }
  }
  x = b.transpose(b.enter("permute"), b.layer_norm(x, "norm", kEpsilon), {0, 3, 1, 2});
  x = b.op("flatten", "Flatten", {b.global_average_pool(x, "avgpool")}, "flatten", {{"axis", int64_t{1}}});
  return b.finish(b.linear(x, "head", b.classes(1000)));
}

}  // namespace opfuse
