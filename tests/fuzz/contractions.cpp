// Convolutions of one to three axes, transposed ones, products.
#include <algorithm>
#include <cmath>

#include "fuzz/operators.hpp"

namespace opfuse::fuzz {
namespace {

struct WindowDraw {
  AttrMap attrs;
  std::vector<int64_t> kernel;
};

/// Kernel, strides, dilations and padding that fit behind [N, C, spatial...].
WindowDraw window(Drawer& d, const Known& x, bool dilates) {
  WindowDraw w;
  std::vector<int64_t> strides, dilations, begin, end;
  const bool usual = d.chance(0.4);
  for (size_t axis = 2; axis < x.rank(); ++axis) {
    const int64_t size = x.sizes()[axis];
    const int64_t kernel = usual ? 3 : d.one_of<int64_t>({1, 1, 2, 3, 3, 4, 5, 7});
    w.kernel.push_back(kernel);
    strides.push_back(usual ? 1 : d.one_of<int64_t>({1, 1, 1, 2, 2, 3}));
    dilations.push_back(dilates && !usual && d.chance(0.2) ? 2 : 1);
    begin.push_back(usual ? 1 : d.between(0, std::min<int64_t>(kernel - 1, 3)));
    end.push_back(usual ? 1 : d.between(0, std::min<int64_t>(kernel - 1, 3)));
    while ((w.kernel.back() - 1) * dilations.back() + 1 > size + begin.back() + end.back() && w.kernel.back() > 1)
      --w.kernel.back();
    begin.back() = std::min(begin.back(), w.kernel.back() - 1);
    end.back() = std::min(end.back(), w.kernel.back() - 1);
  }
  w.attrs = {{"kernel_shape", w.kernel}, {"strides", strides}};
  if (dilates) w.attrs.emplace_back("dilations", dilations);
  if (d.chance(0.1)) {
    w.attrs.emplace_back("auto_pad", d.one_of<std::string>({"SAME_UPPER", "SAME_LOWER", "VALID"}));
    return w;
  }
  begin.insert(begin.end(), end.begin(), end.end());
  w.attrs.emplace_back("pads", begin);
  return w;
}

/// Weights whose sums stay near 1.
Value* weights(Drawer& d, const std::vector<int64_t>& sizes, DType dtype, int64_t terms) {
  if (d.options().exact) return d.constant(sizes, dtype);
  const double scale = 1 / std::sqrt(std::max<double>(1, static_cast<double>(terms)));
  return d.filled(sizes, dtype, [&](int64_t) { return d.inside(-1.7, 1.7) * scale; });
}

int64_t groups_of(Drawer& d, int64_t channels) {
  if (d.chance(0.6)) return 1;
  if (d.chance(0.6)) return channels;
  for (const int64_t g : {4, 2, 3})
    if (channels % g == 0) return g;
  return 1;
}

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (const int64_t size : sizes) n *= size;
  return n;
}

bool conv(Drawer& d) {
  const Known* x =
      d.pick([](const Known& k) { return k.real() && k.rank() >= 3 && k.rank() <= 5 && fixed_extent(k, 1) > 0; });
  if (!x) return false;
  WindowDraw w = window(d, *x, true);
  const int64_t channels = x->sizes()[1], groups = groups_of(d, channels);
  const int64_t out =
      groups == 1 ? d.one_of<int64_t>({1, 3, 4, 8, 13, 16, 24, 32}) : channels * d.one_of<int64_t>({1, 1, 2});
  std::vector<int64_t> sizes{out, channels / groups};
  sizes.insert(sizes.end(), w.kernel.begin(), w.kernel.end());
  w.attrs.emplace_back("group", groups);
  std::vector<Value*> operands{x->value, weights(d, sizes, x->dtype(), product(sizes) / out)};
  if (d.chance(0.6)) operands.push_back(d.constant({out}, x->dtype()));
  return d.add("conv", w.attrs, operands);
}

bool conv_transpose(Drawer& d) {
  const Known* x =
      d.pick([](const Known& k) { return k.real() && k.rank() >= 3 && k.rank() <= 5 && fixed_extent(k, 1) > 0; });
  if (!x) return false;
  WindowDraw w = window(d, *x, true);
  const int64_t channels = x->sizes()[1], groups = groups_of(d, channels);
  const int64_t out = d.one_of<int64_t>({1, 2, 3, 8});
  std::vector<int64_t> sizes{channels, out};
  sizes.insert(sizes.end(), w.kernel.begin(), w.kernel.end());
  w.attrs.emplace_back("group", groups);
  std::vector<Value*> operands{x->value, weights(d, sizes, x->dtype(), product(sizes) / out / groups)};
  if (d.chance(0.5)) operands.push_back(d.constant({out * groups}, x->dtype()));
  return d.add("conv_transpose", w.attrs, operands);
}

bool matmul_constant(Drawer& d) {
  const Known* x = d.pick(
      [](const Known& k) { return k.real() && k.rank() >= 1 && k.rank() <= 4 && fixed_extent(k, k.rank() - 1) > 0; });
  if (!x) return false;
  const int64_t depth = x->sizes().back(), out = d.one_of<int64_t>({1, 2, 7, 8, 16, 24, 31, 32});
  std::vector<int64_t> sizes{depth, out};
  if (d.chance(0.1)) sizes = {depth};
  const Node* node = d.add("matmul", {}, {x->value, weights(d, sizes, x->dtype(), depth)});
  if (!node) return false;
  if (sizes.size() == 2 && d.chance(0.6)) d.add("add", {}, {node->output(), d.constant({out}, x->dtype())});
  return true;
}

bool matmul(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.real() && k.rank() >= 2 && k.rank() <= 4; });
  if (!x) return false;
  const Known* y = d.pick([&](const Known& k) {
    return k.dtype() == x->dtype() && k.rank() >= 2 && k.rank() <= 4 &&
           k.value->type.shape[k.rank() - 2] == x->value->type.shape[x->rank() - 1];
  });
  if (y) return d.add("matmul", {}, {x->value, y->value});
  std::vector<int64_t> perm;  // x times its own transposed
  for (size_t i = 0; i < x->rank(); ++i) perm.push_back(static_cast<int64_t>(i));
  std::swap(perm[x->rank() - 1], perm[x->rank() - 2]);
  Value* turned = d.add1("transpose", {{"perm", perm}}, {x->value});
  return turned && d.add("matmul", {}, {x->value, turned});
}

bool gemm(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.real() && k.rank() == 2 && k.value->type.shape.is_static(); });
  if (!x) x = d.pick([](const Known& k) { return k.real() && k.rank() == 2 && fixed_extent(k, 1) > 0; });
  if (!x) return false;
  const bool a = x->value->type.shape.is_static() && d.chance(0.3), b = d.chance(0.5);
  const int64_t depth = x->sizes()[a ? 0 : 1], out = d.one_of<int64_t>({1, 3, 8, 10, 17, 32});
  std::vector<Value*> operands{
      x->value, weights(d, b ? std::vector<int64_t>{out, depth} : std::vector<int64_t>{depth, out}, x->dtype(), depth)};
  if (d.chance(0.7))
    operands.push_back(d.constant(d.one_of<std::vector<int64_t>>({{out}, {1, out}, {1}, {}, {1, 1}}), x->dtype()));
  return d.add(
      "gemm",
      {{"alpha", d.one_of<double>({1, 1, 0.5})}, {"beta", d.one_of<double>({1, 1, 2})}, {"transA", a}, {"transB", b}},
      operands);
}

bool einsum(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.real() && k.rank() == 3; });
  if (!x) return false;
  const std::string equation =
      d.one_of<std::string>({"abc,abd->acd", "abc,adc->abd", "abc,abc->ab", "abc->acb", "abc->ac", "abc,abc->abc"});
  if (equation.find(',') == std::string::npos) return d.add("einsum", {{"equation", equation}}, {x->value});
  const Known* y = d.pick([&](const Known& k) {
    return k.dtype() == x->dtype() && k.rank() == 3 && k.value->type.shape == x->value->type.shape;
  });
  return y && d.add("einsum", {{"equation", equation}}, {x->value, y->value});
}

}  // namespace

const std::vector<Draw>& contraction_draws() {
  static const std::vector<Draw> list = {{"conv", 12, conv},
                                         {"conv_transpose", 3, conv_transpose},
                                         {"matmul_constant", 6, matmul_constant},
                                         {"matmul", 4, matmul},
                                         {"gemm", 3, gemm},
                                         {"einsum", 2, einsum}};
  return list;
}

}  // namespace opfuse::fuzz
