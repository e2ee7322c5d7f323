// Values on a grid of 8 bit steps and back, per tensor and per channel; quantised weights; products and convolutions of
// codes, depthwise ones too, with zero points at the ends and in the middle; products in i32.
#include <algorithm>
#include <cmath>

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

/// Codes of a drawn type, zero point and step: of u8 at the ends and in the middle, of i8 in the middle.
struct Coded {
  Value *codes = nullptr, *real = nullptr;
  double step = 1;
};

Coded coded(Drawer& d, const Known& x) {
  const DType type = d.chance(0.3) ? DType::i8 : DType::u8;
  const double point = type == DType::u8 ? d.one_of<double>({0, 128, 255}) : d.one_of<double>({0, 0, -7});
  const double step = scale_of(d, x);
  Value *scale = d.scalar(DType::f32, step), *zero = d.scalar(type, point);
  Coded c{d.add1("quantize_linear", {}, {x.value, scale, zero}), nullptr, step};
  if (c.codes) c.real = d.add1("dequantize_linear", {}, {c.codes, scale, zero});
  return c;
}

/// Constant codes, at their ends now and then, with a step for each of axis 0.
Value* coded_weights(Drawer& d, const std::vector<int64_t>& sizes, double largest, std::vector<double>& steps) {
  const bool exact = d.options().exact, ends = d.chance(0.3);
  Value* codes = d.filled(sizes, DType::i8, [&](int64_t) {
    if (exact) return static_cast<double>(d.between(-2, 2));
    return ends ? d.one_of<double>({-128, 127}) : static_cast<double>(d.between(-127, 127));
  });
  Value* scales = d.filled({sizes[0]}, DType::f32, [&](int64_t) {
    steps.push_back(static_cast<double>(static_cast<float>(exact ? 0.5 : d.inside(0.5, 1) * largest / 127)));
    return steps.back();
  });
  Value* zeros = d.filled({sizes[0]}, DType::i8, [](int64_t) { return 0.0; });
  return d.add1("dequantize_linear", {{"axis", int64_t{0}}}, {codes, scales, zeros});
}

}  // namespace

/// Q -> DQ -> Conv of dequantised weights, with a bias of the sum's scale -> Relu -> Add -> Q -> DQ; the last are
/// drawn.
bool quantized_convolution(Drawer& d) {
  const Known* x = d.pick([](const Known& k) {
    return k.dtype() == DType::f32 && k.rank() == 4 && fixed_extent(k, 1) > 0 && k.sizes()[2] > 0 && k.sizes()[3] > 0;
  });
  if (!x) return false;
  const int64_t channels = x->sizes()[1];
  const bool depthwise = d.chance(0.4);
  const int64_t outputs = depthwise ? channels : d.one_of<int64_t>({1, 8, 16, 17, 33});
  std::vector<int64_t> kernel, pads, strides;
  for (size_t axis = 2; axis < 4; ++axis) {
    const int64_t room = x->sizes()[axis];
    kernel.push_back(std::min(room, d.one_of<int64_t>({1, 2, 3, 3, 5, 7})));
    pads.push_back(d.chance(0.4) ? 0 : kernel.back() / 2);
    strides.push_back(d.one_of<int64_t>({1, 1, 2}));
  }
  pads.insert(pads.end(), {pads[0], pads[1]});
  const Coded data = coded(d, *x);
  if (!data.real) return false;
  const std::vector<int64_t> sizes{outputs, depthwise ? 1 : channels, kernel[0], kernel[1]};
  std::vector<double> steps;
  Value* weights = coded_weights(d, sizes, 1.0 / static_cast<double>(sizes[1] * sizes[2] * sizes[3]), steps);
  if (!weights) return false;
  std::vector<Value*> operands{data.real, weights};
  if (d.chance(0.6)) {
    const double bound = d.options().exact ? 8 : 20000;
    Value* codes = d.filled({outputs}, DType::i32, [&](int64_t) { return std::floor(d.inside(-bound, bound)); });
    Value* scales = d.filled({outputs}, DType::f32, [&](int64_t i) {
      return static_cast<double>(static_cast<float>(data.step) * static_cast<float>(steps[static_cast<size_t>(i)]));
    });
    Value* bias = d.add1("dequantize_linear", {{"axis", int64_t{0}}}, {codes, scales});
    if (!bias) return false;
    operands.push_back(bias);
  }
  Value* y = d.add1(
      "conv",
      {{"kernel_shape", kernel}, {"pads", pads}, {"strides", strides}, {"group", depthwise ? channels : int64_t{1}}},
      operands);
  if (y && d.chance(0.5)) y = d.add1("relu", {}, {y});
  if (y && d.chance(0.4) && d.known(y).sizes() == x->sizes()) y = d.add1("add", {}, {y, data.real});
  if (!y || d.chance(0.2)) return y;
  return coded(d, d.known(y)).real;
}

const std::vector<Draw>& quantized_draws() {
  static const std::vector<Draw> list = {{"round_trip", 2, round_trip},
                                         {"per_channel", 1, per_channel},
                                         {"quantized_product", 1, quantized_product},
                                         {"product_of_codes", 1, product_of_codes}};
  return list;
}

}  // namespace opfuse::fuzz
