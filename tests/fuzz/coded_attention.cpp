// Attention as quantisers leave it: pairs of QuantizeLinear and DequantizeLinear around queries, keys, values, scores,
// weights and result, each drawn, in front of, between or behind the movements that cut heads; u8 and i8 codes with
// zero points at the ends, in the middle and elsewhere.
#include <cmath>

#include "fuzz/operators.hpp"

namespace opfuse::fuzz {
namespace {

using Axes = std::vector<int64_t>;

Value* pair(Drawer& d, Value* x, double step, DType type, double point) {
  Value *scale = d.scalar(DType::f32, step), *zero = d.scalar(type, point);
  Value* codes = x ? d.add1("quantize_linear", {}, {x, scale, zero}) : nullptr;
  return codes ? d.add1("dequantize_linear", {}, {codes, scale, zero}) : nullptr;
}

/// With a pair behind it, now and then two of them; null stays null.
Value* coded(Drawer& d, Value* x, double often = 0.85) {
  if (!x || !d.chance(often)) return x;
  const bool bytes = d.chance(0.6);
  const double point = bytes ? d.one_of<double>({0, 128, 128, 255, 117}) : d.one_of<double>({0, 0, -128, 127, -7});
  const double step = (d.known(x).magnitude() + 0.1) / d.one_of<double>({30, 100, 127, 255});
  Value* once = pair(d, x, step, bytes ? DType::u8 : DType::i8, point);
  return d.chance(0.05) ? coded(d, once, 1) : once;
}

/// Of weights: 0 to 1.
Value* coded_weights(Drawer& d, Value* x) {
  if (!x || !d.chance(0.85)) return x;
  switch (d.between(0, 3)) {
    case 0:
      return pair(d, x, 1.0 / 127, DType::i8, 0);
    case 1:
      return pair(d, x, 1.0 / 255, DType::i8, -128);
    case 2:
      return pair(d, x, d.inside(0.002, 0.01), DType::u8, d.one_of<double>({0, 3}));
    default:
      return pair(d, x, 1.0 / 255, DType::u8, 0);
  }
}

Value* projection(Drawer& d, Value* x, int64_t width) {
  const int64_t depth = d.known(x).sizes().back();
  const double size = 1.7 / std::sqrt(static_cast<double>(depth));
  Value* weights = nullptr;
  if (d.chance(0.5)) {
    Value* codes =
        d.filled({depth, width}, DType::i8, [&](int64_t) { return static_cast<double>(d.between(-127, 127)); });
    weights = d.add1("dequantize_linear", {}, {codes, d.scalar(DType::f32, size / 127), d.scalar(DType::i8, 0)});
  } else {
    weights = d.filled({depth, width}, DType::f32, [&](int64_t) { return d.inside(-size, size); });
  }
  Value* y = weights ? d.add1("matmul", {}, {x, weights}) : nullptr;
  return y && d.chance(0.5) ? d.add1("add", {}, {y, d.constant({width}, DType::f32)}) : y;
}

struct Heads {
  int64_t count = 1, size = 1;
};

/// [b, s, heads * size] -> [b, heads, s, size], or turned [b, heads, size, s]; one pair in one of the places.
Value* cut(Drawer& d, Value* x, const Heads& heads, bool turned) {
  const int64_t place = d.between(0, 3);
  Value* y = place == 0 ? coded(d, x) : x;
  y = y ? d.add1("reshape", {}, {y, d.integers({0, -1, heads.count, heads.size})}) : nullptr;
  if (place == 1) y = coded(d, y);
  const bool at_once = turned && d.chance(0.5);
  y = y ? d.add1("transpose", {{"perm", at_once ? Axes{0, 2, 3, 1} : Axes{0, 2, 1, 3}}}, {y}) : nullptr;
  if (place == 2) y = coded(d, y);
  if (turned && !at_once) y = y ? d.add1("transpose", {{"perm", Axes{0, 1, 3, 2}}}, {y}) : nullptr;
  return place == 3 ? coded(d, y) : y;
}

/// By all keys or rows alike, or of its own where their number is fixed.
Value* mask(Drawer& d, const Known& scores) {
  const int64_t rows = fixed_extent(scores, 2), keys = fixed_extent(scores, 3);
  if (keys == 0) return d.constant({1, 1, 1, 1}, DType::f32);
  const double fill = d.one_of<double>({-1, -50, -900});
  Axes sizes{1, 1, rows > 0 && d.chance(0.5) ? rows : 1, keys};
  return d.filled(sizes, DType::f32, [&](int64_t i) { return i % keys > 0 && d.chance(0.4) ? fill : 0; });
}

Value* scaled(Drawer& d, Value* x, double by) {
  if (!x) return nullptr;
  return d.chance(0.5) ? d.add1("mul", {}, {x, d.scalar(DType::f32, by)})
                       : d.add1("div", {}, {x, d.scalar(DType::f32, 1 / by)});
}

Value* scores_of(Drawer& d, Value* q, Value* k, int64_t size) {
  const double by = 1 / std::sqrt(static_cast<double>(size));
  const bool of_queries = d.chance(0.3), of_scores = !of_queries && d.chance(0.8);
  if (of_queries) q = coded(d, scaled(d, q, by), 0.5);
  Value* scores = q && k ? coded(d, d.add1("matmul", {}, {q, k})) : nullptr;
  if (of_scores) scores = coded(d, scaled(d, scores, by), 0.3);
  if (scores && d.chance(0.4)) scores = coded(d, d.add1("add", {}, {scores, mask(d, d.known(scores))}), 0.4);
  return scores;
}

}  // namespace

bool quantized_attention(Drawer& d) {
  const Known* x = d.pick([](const Known& k) {
    return k.dtype() == DType::f32 && k.rank() == 3 && fixed_extent(k, 2) > 0 && k.sizes()[0] * k.sizes()[1] > 0;
  });
  if (!x || d.options().exact) return false;
  const Heads heads{d.between(1, 3), d.one_of<int64_t>({1, 3, 4, 7, 8, 13, 16, 17, 32, 64})};
  const int64_t width = heads.count * heads.size, last = x->sizes().back();
  Value* from = coded(d, x->value, 0.6);
  Value* q = from ? projection(d, from, width) : nullptr;
  Value* k = q ? projection(d, d.chance(0.8) ? from : x->value, width) : nullptr;
  Value* v = !k ? nullptr : d.chance(0.1) ? k : projection(d, from, width);
  q = cut(d, q, heads, false), k = cut(d, k, heads, true), v = cut(d, v, heads, false);
  Value* scores = scores_of(d, q, k, heads.size);
  Value* weights = scores ? coded_weights(d, d.add1("softmax", {{"axis", int64_t{-1}}}, {scores})) : nullptr;
  Value* y = weights && v ? d.add1("matmul", {}, {weights, v}) : nullptr;
  const int64_t place = d.between(0, 3);
  if (place == 0) y = coded(d, y);
  y = y ? d.add1("transpose", {{"perm", Axes{0, 2, 1, 3}}}, {y}) : nullptr;
  if (place == 1) y = coded(d, y);
  y = y ? d.add1("reshape", {}, {y, d.integers({0, -1, width})}) : nullptr;
  if (place == 2) y = coded(d, y);
  return y && (d.chance(0.3) || coded(d, projection(d, y, last), 0.5));
}

}  // namespace opfuse::fuzz
