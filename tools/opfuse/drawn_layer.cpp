// Sizes are drawn log-uniformly, so that small and large layers are equally likely; a layer outside 1 MFLOP .. 1 GFLOP
// is drawn again: below, only the launch would be measured, above, the run would take too long.
//
//   x -> [average pool 3x3 ->] conv -> relu [-> average pool 3x3] -> y        [..]: its surroundings
#include "drawn_layer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ops/registry.hpp"

namespace opfuse::cli {
namespace {

constexpr double kLeastFlop = 1e6, kMostFlop = 1e9;

int64_t log_uniform(Random& random, int64_t low, int64_t high) {
  const double value = std::exp(std::log(static_cast<double>(low)) +
                                random.uniform() * std::log(static_cast<double>(high) / static_cast<double>(low)));
  return std::clamp(static_cast<int64_t>(std::llround(value)), low, high);
}

Tensor random_tensor(Random& random, std::vector<int64_t> sizes) {
  Tensor tensor(DType::f32, std::move(sizes));
  int64_t fan_in = 1;
  for (size_t i = 1; i < tensor.rank(); ++i) fan_in *= tensor.dim(i);
  const float scale = static_cast<float>(1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, fan_in))));
  for (float& value : tensor.mutable_view<float>()) value = scale * static_cast<float>(2 * random.uniform() - 1);
  return tensor;
}

struct ConvSizes {
  int64_t batch, in, out, height, width, kernel, stride, dilation, group;
  /// Of one axis: pairs of output and tap inside the input, and input elements that any of them reads.
  std::pair<double, double> taps_and_elements(int64_t size) const {
    std::set<int64_t> read;
    double taps = 0;
    for (int64_t p = 0; p < result(size); ++p)
      for (int64_t r = 0; r < kernel; ++r)
        if (const int64_t at = p * stride + r * dilation - pad(); at >= 0 && at < size) taps += 1, read.insert(at);
    return {taps, static_cast<double>(read.size())};
  }
  double useful_flop() const {
    return 2.0 * static_cast<double>(batch * out * (in / group)) * taps_and_elements(height).first *
           taps_and_elements(width).first;
  }
  double bytes() const {
    const double x =
        static_cast<double>(batch * in) * taps_and_elements(height).second * taps_and_elements(width).second;
    const auto weights = static_cast<double>(out * (in / group) * kernel * kernel + out);
    return 4.0 * (x + weights + static_cast<double>(batch * out * result(height) * result(width)));
  }
  int64_t pad() const { return dilation * (kernel - 1) / 2; }
  int64_t result(int64_t size) const { return (size + 2 * pad() - dilation * (kernel - 1) - 1) / stride + 1; }
  double flop() const {
    return 2.0 * static_cast<double>(batch * out * (in / group) * kernel * kernel) *
           static_cast<double>(result(height) * result(width));
  }
};

ConvSizes draw_conv_sizes(Random& random, bool depthwise) {
  ConvSizes s{};
  s.batch = random.between(1, 4);
  s.height = log_uniform(random, 5, 112);
  s.width = std::clamp<int64_t>(s.height + random.between(-4, 4), 5, 112);
  const int64_t kernels[] = {1, 3, 3, 5, 7};
  s.kernel = kernels[random.between(depthwise ? 1 : 0, depthwise ? 4 : 3)];
  s.stride = random.between(0, 3) == 0 ? 2 : 1;
  s.dilation = s.kernel > 1 && random.between(0, 5) == 0 ? 2 : 1;
  if (depthwise) {
    s.in = s.out = s.group = log_uniform(random, 8, 1024);
    return s;
  }
  s.group = random.between(0, 5) == 0 ? random.between(2, 4) : 1;
  s.in = std::max<int64_t>(1, log_uniform(random, 3, 768) / s.group) * s.group;
  s.out = std::max<int64_t>(1, log_uniform(random, 8, 768) / s.group) * s.group;
  return s;
}

Value* average_pool(Graph& g, Value* x, const std::string& name) {
  const AttrMap attributes{{"kernel_shape", std::vector<int64_t>(2, 3)}, {"pads", std::vector<int64_t>(4, 1)}};
  return g.add_node(op_named("average_pool"), attributes, {x}, 1, {{name, "AveragePool", "", 17}})->output();
}

DrawnLayer conv_layer(Random& random, bool depthwise, Surroundings surroundings) {
  ConvSizes s = draw_conv_sizes(random, depthwise);
  while (s.flop() < kLeastFlop || s.flop() > kMostFlop) s = draw_conv_sizes(random, depthwise);
  DrawnLayer layer;
  layer.node = "conv";
  layer.flop = s.useful_flop();
  layer.bytes = s.bytes();
  layer.outputs = s.out;
  layer.groups = s.group;
  layer.kind = depthwise ? "depthwise" : "conv";
  layer.title = fmt::format("{} {}x{}x{}x{} -> {}, {}x{} s{} d{} g{}", layer.kind, s.batch, s.in, s.height, s.width,
                            s.out, s.kernel, s.kernel, s.stride, s.dilation, s.group);
  Graph& g = layer.graph;
  Value* x = g.add_input("x", {DType::f32, Shape{s.batch, s.in, s.height, s.width}});
  Value* w = g.add_constant(random_tensor(random, {s.out, s.in / s.group, s.kernel, s.kernel}), "w");
  Value* b = g.add_constant(random_tensor(random, {s.out}), "b");
  if (surroundings == Surroundings::network) x = average_pool(g, x, "before");
  const std::vector<int64_t> pads(4, s.pad());
  Node* conv = g.add_node(op_named("conv"),
                          AttrMap{{"dilations", std::vector<int64_t>(2, s.dilation)},
                                  {"group", s.group},
                                  {"kernel_shape", std::vector<int64_t>(2, s.kernel)},
                                  {"pads", pads},
                                  {"strides", std::vector<int64_t>(2, s.stride)}},
                          {x, w, b}, 1, {{"conv", "Conv", "", 17}});
  Node* relu = g.add_node(op_named("relu"), AttrMap{}, {conv->output()}, 1, {{"relu", "Relu", "", 17}});
  Value* y = relu->output();
  if (surroundings == Surroundings::network) y = average_pool(g, y, "after");
  y->name = "y";
  g.set_outputs({y});
  return layer;
}

DrawnLayer gemm_layer(Random& random) {
  int64_t m, n, k;
  do {
    m = log_uniform(random, 1, 512);
    n = log_uniform(random, 16, 2048);
    k = log_uniform(random, 16, 2048);
  } while (2.0 * static_cast<double>(m * n * k) < kLeastFlop || 2.0 * static_cast<double>(m * n * k) > kMostFlop);
  DrawnLayer layer;
  layer.kind = layer.node = "gemm";
  layer.flop = 2.0 * static_cast<double>(m * n * k);
  layer.bytes = 4.0 * static_cast<double>(m * k + k * n + n + m * n);
  layer.outputs = n;
  layer.title = fmt::format("gemm {}x{} * {}x{}", m, k, k, n);
  Graph& g = layer.graph;
  Value* x = g.add_input("x", {DType::f32, Shape{m, k}});
  Value* w = g.add_constant(random_tensor(random, {n, k}), "w");
  Value* b = g.add_constant(random_tensor(random, {n}), "b");
  Node* gemm = g.add_node(op_named("gemm"), AttrMap{{"transB", true}}, {x, w, b}, 1, {{"gemm", "Gemm", "", 17}});
  gemm->output()->name = "y";
  g.set_outputs({gemm->output()});
  return layer;
}

}  // namespace

DrawnLayer draw_layer(Random& random, Surroundings surroundings) {
  const int64_t kind = random.between(0, 4);
  if (kind == 0) return gemm_layer(random);
  return conv_layer(random, kind == 1, surroundings);
}

}  // namespace opfuse::cli
