// Values on a grid of 8 bit steps and back, per tensor and per channel; quantised weights; products in i32.
#include "fuzz/operators.hpp"

namespace opfuse::fuzz {
namespace {

double scale_of(Drawer& d, const Known& x) { return d.options().exact ? 0.5 : (x.magnitude() + 0.1) / 100; }

bool round_trip(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.dtype() == DType::f32; });
  if (!x) return false;
  const DType type = d.chance(0.5) ? DType::i8 : DType::u8;
  Value *scale = d.scalar(DType::f32, scale_of(d, *x)), *zero = d.scalar(type, type == DType::u8 ? 128 : 0);
  Value* q = d.add1("quantize_linear", {}, {x->value, scale, zero});
  return q && d.add("dequantize_linear", {}, {q, scale, zero});
}

bool per_channel(Drawer& d) {
  const Known* x =
      d.pick([](const Known& k) { return k.dtype() == DType::f32 && k.rank() >= 2 && fixed_extent(k, 1) > 0; });
  if (!x) return false;
  const std::vector<int64_t> c{x->sizes()[1]};
  const double scale = scale_of(d, *x);
  Value* scales = d.filled(c, DType::f32, [&](int64_t i) { return scale * static_cast<double>(1 + i % 2); });
  Value* zero = d.filled(c, DType::i8, [](int64_t) { return 0.0; });
  Value* q = d.add1("quantize_linear", {{"axis", int64_t{1}}}, {x->value, scales, zero});
  return q && d.add("dequantize_linear", {{"axis", int64_t{1}}}, {q, scales, zero});
}

/// Q -> DQ -> MatMul with dequantised weights -> Q -> DQ.
bool quantized_product(Drawer& d) {
  const Known* x = d.pick([](const Known& k) {
    return k.dtype() == DType::f32 && k.rank() >= 2 && k.rank() <= 3 && fixed_extent(k, k.rank() - 1) > 0;
  });
  if (!x) return false;
  const int64_t depth = x->sizes().back(), out = d.one_of<int64_t>({1, 8, 16, 17});
  Value *scale = d.scalar(DType::f32, scale_of(d, *x)), *zero = d.scalar(DType::i8, 0);
  Value* q = d.add1("quantize_linear", {}, {x->value, scale, zero});
  Value* back = q ? d.add1("dequantize_linear", {}, {q, scale, zero}) : nullptr;
  if (!back) return false;
  Value* weights = d.filled({depth, out}, DType::i8, [&](int64_t) {
    return static_cast<double>(d.options().exact ? d.between(-2, 2) : d.between(-127, 127));
  });
  Value* steps = d.filled({out}, DType::f32, [&](int64_t) {
    return d.options().exact ? 0.5 : d.inside(0.5, 1) / 127 / static_cast<double>(depth);
  });
  Value* real = d.add1("dequantize_linear", {{"axis", int64_t{1}}},
                       {weights, steps, d.filled({out}, DType::i8, [](int64_t) { return 0.0; })});
  Value* product = real ? d.add1("matmul", {}, {back, real}) : nullptr;
  if (!product) return false;
  if (d.chance(0.5)) return true;
  Value* step = d.scalar(DType::f32, scale_of(d, d.known(product)));
  Value* again = d.add1("quantize_linear", {}, {product, step, zero});
  return again && d.add("dequantize_linear", {}, {again, step, zero});
}

/// Codes of a computed tensor times constant codes, in i32 and back to steps: what dynamic quantisation makes.
bool product_of_codes(Drawer& d) {
  const Known* x = d.pick([](const Known& k) {
    return k.dtype() == DType::f32 && k.rank() >= 2 && k.rank() <= 3 && fixed_extent(k, k.rank() - 1) > 0;
  });
  if (!x) return false;
  const int64_t depth = x->sizes().back(), out = d.one_of<int64_t>({1, 8, 16, 17});
  const DType type = d.chance(0.5) ? DType::i8 : DType::u8, of_weights = d.chance(0.7) ? DType::i8 : DType::u8;
  const double step = scale_of(d, *x);
  const double point = type == DType::u8 ? d.one_of<double>({0, 128, 255}) : 0;
  Value *scale = d.scalar(DType::f32, step), *zero = d.scalar(type, point);
  Value* q = d.add1("quantize_linear", {}, {x->value, scale, zero});
  const bool exact = d.options().exact;
  Value* weights = d.filled({depth, out}, of_weights, [&](int64_t) {
    if (exact) return static_cast<double>(of_weights == DType::i8 ? d.between(-2, 2) : d.between(0, 3));
    return static_cast<double>(of_weights == DType::i8 ? d.between(-128, 127) : d.between(0, 255));
  });
  Value* weight_zero = of_weights == DType::u8 ? d.scalar(DType::u8, exact ? 1 : 128) : nullptr;
  Value* sums = q ? d.add1("matmul_integer", {}, {q, weights, zero, weight_zero}) : nullptr;
  Value* real = sums ? d.add1("cast", {{"to", DType::f32}}, {sums}) : nullptr;
  const double unit = exact ? 0.5 : 1.0 / 128 / static_cast<double>(depth);
  return real && d.add("mul", {}, {real, d.scalar(DType::f32, unit)});
}

}  // namespace

const std::vector<Draw>& quantized_draws() {
  static const std::vector<Draw> list = {{"round_trip", 2, round_trip},
                                         {"per_channel", 1, per_channel},
                                         {"quantized_product", 1, quantized_product},
                                         {"product_of_codes", 1, product_of_codes}};
  return list;
}

}  // namespace opfuse::fuzz
