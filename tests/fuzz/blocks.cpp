// Blocks that fusion knows by name: residual convolutions, squeeze and excitation, attention, gated products, norms
// that are spelled out.
#include <cmath>

#include "fuzz/operators.hpp"

namespace opfuse::fuzz {
namespace {

const Known* image(Drawer& d) {
  return d.pick([](const Known& k) { return k.real() && k.rank() == 4 && fixed_extent(k, 1) > 0; });
}

const Known* rows(Drawer& d) {
  return d.pick([](const Known& k) { return k.real() && k.rank() == 3 && fixed_extent(k, 2) > 0; });
}

Value* convolution(Drawer& d, Value* x, int64_t out, int64_t kernel, int64_t stride, int64_t group) {
  const Known& k = d.known(x);
  const int64_t in = k.sizes()[1] / group;
  const double scale = 1 / std::sqrt(static_cast<double>(in * kernel * kernel));
  Value* w = d.filled({out, in, kernel, kernel}, k.dtype(),
                      [&](int64_t) { return d.options().exact ? d.number() : d.inside(-1.7, 1.7) * scale; });
  const int64_t p = kernel / 2;
  std::vector<Value*> operands{x, w};
  if (d.chance(0.5)) operands.push_back(d.constant({out}, k.dtype()));
  return d.add1("conv",
                {{"kernel_shape", std::vector<int64_t>{kernel, kernel}},
                 {"strides", std::vector<int64_t>{stride, stride}},
                 {"pads", std::vector<int64_t>{p, p, p, p}},
                 {"group", group}},
                operands);
}

Value* norm(Drawer& d, Value* x) {
  if (!x || d.options().exact || d.chance(0.4)) return x;
  const Known& k = d.known(x);
  const std::vector<int64_t> c{k.sizes()[1]};
  return d.add1("batch_norm", {},
                {x, d.constant(c, k.dtype(), 0.5, 1.5), d.constant(c, k.dtype()), d.constant(c, k.dtype()),
                 d.constant(c, k.dtype(), 0.3, 2)});
}

Value* activated(Drawer& d, Value* x) {
  if (!x) return nullptr;
  if (d.options().exact) return d.add1("relu", {}, {x});
  if (d.chance(0.2)) {  // SiLU in its two nodes
    Value* gate = d.add1("sigmoid", {}, {x});
    return gate ? d.add1("mul", {}, {x, gate}) : nullptr;
  }
  return d.add1(d.one_of<const char*>({"relu", "relu", "hard_swish", "sigmoid", "gelu", "leaky_relu", "tanh"}), {},
                {x});
}

bool residual(Drawer& d) {
  const Known* x = image(d);
  if (!x) return false;
  const int64_t c = x->sizes()[1];
  Value* y = activated(d, norm(d, convolution(d, x->value, c, 3, 1, 1)));
  if (y) y = norm(d, convolution(d, y, c, d.chance(0.5) ? 3 : 1, 1, 1));
  return y && activated(d, d.add1("add", {}, {y, x->value}));
}

/// 1x1, depthwise, 1x1, as in MobileNet; with squeeze and excitation now and then.
bool inverted(Drawer& d) {
  const Known* x = image(d);
  if (!x) return false;
  const int64_t c = x->sizes()[1], wide = d.one_of<int64_t>({8, 16, 24, 40});
  Value* y = activated(d, norm(d, convolution(d, x->value, wide, 1, 1, 1)));
  const int64_t stride = d.chance(0.3) ? 2 : 1;
  if (y) y = activated(d, norm(d, convolution(d, y, wide, d.chance(0.3) ? 5 : 3, stride, wide)));
  if (y && d.chance(0.4) && !d.options().exact) {
    Value* mean = d.add1("global_average_pool", {}, {y});
    Value* inner = mean ? activated(d, convolution(d, mean, 4, 1, 1, 1)) : nullptr;
    Value* gate = inner ? convolution(d, inner, wide, 1, 1, 1) : nullptr;
    gate = gate ? d.add1(d.chance(0.5) ? "sigmoid" : "hard_sigmoid", {}, {gate}) : nullptr;
    if (gate) y = d.add1("mul", {}, {y, gate});
  }
  if (y) y = norm(d, convolution(d, y, c, 1, 1, 1));
  if (y && stride == 1) y = d.add1("add", {}, {y, x->value});
  return y;
}

Value* product(Drawer& d, Value* x, int64_t out) {
  const Known& k = d.known(x);
  const int64_t depth = k.sizes().back();
  const double scale = 1 / std::sqrt(static_cast<double>(depth));
  Value* w = d.filled({depth, out}, k.dtype(),
                      [&](int64_t) { return d.options().exact ? d.number() : d.inside(-1.7, 1.7) * scale; });
  Value* y = d.add1("matmul", {}, {x, w});
  return y && d.chance(0.6) ? d.add1("add", {}, {y, d.constant({out}, k.dtype())}) : y;
}

Value* heads(Drawer& d, Value* x, int64_t count, int64_t size, bool turned) {
  Value* y = x ? d.add1("reshape", {}, {x, d.integers({0, -1, count, size})}) : nullptr;
  return y ? d.add1("transpose",
                    {{"perm", turned ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3}}}, {y})
           : nullptr;
}

bool attention(Drawer& d) {
  const Known* x = rows(d);
  if (!x || d.options().exact) return false;
  const int64_t count = d.between(1, 3), size = d.one_of<int64_t>({1, 4, 8, 16}), width = count * size;
  Value *q = product(d, x->value, width), *k = q ? product(d, x->value, width) : nullptr,
        *v = k ? product(d, x->value, width) : nullptr;
  q = heads(d, q, count, size, false), k = heads(d, k, count, size, true), v = heads(d, v, count, size, false);
  Value* scores = q && k && v ? d.add1("matmul", {}, {q, k}) : nullptr;
  if (scores) scores = d.add1("mul", {}, {scores, d.scalar(x->dtype(), 1 / std::sqrt(static_cast<double>(size)))});
  if (scores && d.chance(0.3)) scores = d.add1("add", {}, {scores, d.constant({1, 1, 1, 1}, x->dtype())});
  Value* weights = scores ? d.add1("softmax", {{"axis", int64_t{-1}}}, {scores}) : nullptr;
  Value* y = weights ? d.add1("matmul", {}, {weights, v}) : nullptr;
  y = y ? d.add1("transpose", {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}, {y}) : nullptr;
  y = y ? d.add1("reshape", {}, {y, d.integers({0, -1, width})}) : nullptr;
  return y && product(d, y, x->sizes().back());
}

bool gated(Drawer& d) {
  const Known* x = rows(d);
  if (!x || d.options().exact) return false;
  const int64_t wide = d.one_of<int64_t>({8, 16, 24, 33});
  Value* gate = activated(d, product(d, x->value, wide));
  Value* up = gate ? product(d, x->value, wide) : nullptr;
  Value* both = up ? d.add1("mul", {}, {gate, up}) : nullptr;
  return both && product(d, both, x->sizes().back());
}

/// LayerNorm or RMSNorm in its primitives.
bool spelled_norm(Drawer& d) {
  const Known* x = rows(d);
  if (!x || d.options().exact) return false;
  Value* axes = d.integers({-1});
  Value* centred = x->value;
  if (d.chance(0.6)) {
    Value* mean = d.add1("reduce_mean", {}, {x->value, axes});
    centred = mean ? d.add1("sub", {}, {x->value, mean}) : nullptr;
  }
  Value* square = centred ? d.add1("pow", {}, {centred, d.scalar(x->dtype(), 2)}) : nullptr;
  Value* variance = square ? d.add1("reduce_mean", {}, {square, axes}) : nullptr;
  Value* shifted = variance ? d.add1("add", {}, {variance, d.scalar(x->dtype(), 0.05)}) : nullptr;
  Value* root = shifted ? d.add1("sqrt", {}, {shifted}) : nullptr;
  Value* y = root ? d.add1("div", {}, {centred, root}) : nullptr;
  return y && d.add("mul", {}, {y, d.constant({x->sizes().back()}, x->dtype())});
}

bool scale_down(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.real() && k.magnitude() > 4; });
  return x && d.add("mul", {}, {x->value, d.scalar(x->dtype(), 0.25)});
}

}  // namespace

const std::vector<Draw>& block_draws() {
  static const std::vector<Draw> list = {{"residual", 4, residual},         {"inverted", 4, inverted},
                                         {"attention", 4, attention},       {"gated", 2, gated},
                                         {"spelled_norm", 2, spelled_norm}, {"scale_down", 4, scale_down}};
  return list;
}

}  // namespace opfuse::fuzz
