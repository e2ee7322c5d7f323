// Convolution as a matrix product per image and group: weights [O/g, C/g * taps] times the image's windows
// [C/g * taps, positions]. The windows are never stored: the product asks for panels of them, which are read from the
// image directly; taps in the padding are zeros.
#include "ops/conv.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "base/parallel.hpp"
#include "ops/checks.hpp"
#include "ops/gemm_f64.hpp"
#include "ops/is_a.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {
namespace {

std::vector<int64_t> kernel_of(const Shape& w) {
  std::vector<int64_t> kernel;
  for (size_t i = 2; i < w.rank(); ++i) kernel.push_back(w[i].value());
  return kernel;
}

/// Reads windows of one image plane set [channels, spatial...] as columns.
class WindowColumns {
 public:
  WindowColumns(const std::vector<WindowSizes>& axes, int64_t plane) : axes_(axes), plane_(plane) {
    taps_ = 1;
    for (const WindowSizes& a : axes_) taps_ *= a.kernel;
    pitch_.assign(axes_.size(), 1);
    for (size_t i = axes_.size(); i-- > 1;) pitch_[i - 1] = pitch_[i] * axes_[i].in;
  }

  void pack(const double* x, int64_t k0, int64_t depth, int64_t j0, int64_t columns, double* to) const {
    const size_t rank = axes_.size();
    std::vector<int64_t> origin(size_t(columns) * rank), base(size_t(columns), 0), tap(rank);
    for (int64_t j = 0; j < columns; ++j) {
      int64_t at = j0 + j;
      for (size_t i = rank; i-- > 0; at /= axes_[i].out) {
        origin[size_t(j) * rank + i] = at % axes_[i].out * axes_[i].stride - axes_[i].pad_begin;
        base[size_t(j)] += origin[size_t(j) * rank + i] * pitch_[i];
      }
    }
    for (int64_t k = k0; k < k0 + depth; ++k, to += kColumnTile) {
      int64_t rest = k % taps_, shift = 0;
      for (size_t i = rank; i-- > 0; rest /= axes_[i].kernel) {
        tap[i] = rest % axes_[i].kernel * axes_[i].dilation;
        shift += tap[i] * pitch_[i];
      }
      const double* plane = x + k / taps_ * plane_;
      for (int64_t j = 0; j < columns; ++j) {
        bool inside = true;
        for (size_t i = 0; i < rank; ++i) {
          const auto p = static_cast<uint64_t>(origin[size_t(j) * rank + i] + tap[i]);
          inside &= p < static_cast<uint64_t>(axes_[i].in);
        }
        to[j] = inside ? plane[base[size_t(j)] + shift] : 0.0;
      }
    }
  }

 private:
  std::vector<WindowSizes> axes_;
  std::vector<int64_t> pitch_;
  int64_t plane_, taps_;
};

void check_channels(const Conv::Attrs& a, const Shape& x, const Shape& w) {
  if (a.group < 1) throw fail(E::bad_attribute, "group is {}; at least 1 is expected", a.group);
  if (!may_equal(x[1], w[1] * Dim(a.group)))
    throw fail(E::channel_mismatch, "input has {} channels but the weights expect {}", x[1].text(),
               (w[1] * Dim(a.group)).text())
        .hint(fmt::format("weights are [out, in/group, kernel...]; group is {}", a.group));
  assume(DimRule::equal, x[1], w[1] * Dim(a.group), "the input has the channels that the weights expect");
  if (w[0].is_constant() && w[0].value() % a.group != 0)
    throw fail(E::channel_mismatch, "{} output channels cannot be split into {} groups", w[0].text(), a.group);
  assume(DimRule::multiple, w[0], a.group, "output channels are split into groups");
}

}  // namespace

OpSpec Conv::spec() {
  return {.name = "conv",
          .inputs = {{"x"}, {"w"}, {.name = "b", .optional = true}},
          .outputs = {{"y"}},
          .kind = OpKind::contraction,
          .doc = "Convolution with groups, strides, dilations and padding over any number of spatial axes."};
}

std::vector<WindowAxis> Conv::window(const Attrs& a, const Shape& x, const Shape& w) {
  const std::vector<int64_t> kernel = kernel_of(w);
  if (!a.kernel_shape.empty() && a.kernel_shape != kernel)
    throw fail(E::bad_attribute, "kernel_shape is {}, the weights have {}", text_of(a.kernel_shape), text_of(kernel));
  return resolve_pads(a, kernel, x);
}

std::vector<TensorType> Conv::infer(const Attrs& a, const Inference& in) {
  require_float(in, 0);
  require_same_dtype(in, 0, 1);
  require_same_dtype(in, 0, 2);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  const Shape &x = in.shape(0), &w = in.shape(1);
  require_min_rank(in, 0, 3);
  in.require_rank(1, x.rank());
  check_channels(a, x, w);
  if (in.has(2)) require_vector(in, 2, w[0], "the bias");
  std::vector<Dim> y = {x[0], w[0]};
  for (const WindowAxis& axis : window(a, x, w)) y.push_back(axis.out);
  return {{in.dtype(0), Shape(std::move(y))}};
}

std::vector<Tensor> Conv::reference(const Attrs& a, Tensors in, Precision) {
  const Reals x(*in[0]), w(*in[1]);
  const auto axes = concrete(window(a, Shape::of(in[0]->sizes()), Shape::of(in[1]->sizes())));
  const int64_t batch = in[0]->dim(0), channels = in[0]->dim(1), out = in[1]->dim(0), depth_channels = in[1]->dim(1);
  std::vector<int64_t> sizes = {batch, out};
  for (const WindowSizes& axis : axes) sizes.push_back(axis.out);
  const int64_t positions = product(sizes, 2, sizes.size());
  const int64_t plane = product(in[0]->sizes(), 2, sizes.size());
  const int64_t depth = product(in[1]->sizes(), 1, sizes.size());
  Tensor y(DType::f64, sizes);
  if (in.size() > 2 && in[2]) {
    const Reals b(*in[2]);
    for (int64_t i = 0; i < batch * out; ++i) std::fill_n(reals(y) + i * positions, positions, b[i % out]);
  }
  if (y.elements() == 0 || depth == 0) return {rounded(y, in[0]->dtype())};

  const int64_t rows = out / a.group;
  std::vector<PackedRows> weights;
  for (int64_t g = 0; g < a.group; ++g)
    weights.emplace_back(rows, depth, MatrixView{w.data() + g * rows * depth, depth, 1});
  const WindowColumns windows(axes, plane);
  // One task per image, group and chunk of positions; several groups share a task when they are small (depthwise).
  const int64_t chunk =
      std::min<int64_t>(192, std::max<int64_t>(kColumnTile, positions / 8 / kColumnTile * kColumnTile));
  const int64_t chunks = (positions + chunk - 1) / chunk;
  const auto task = [&](int64_t t) {
    const int64_t c = t % chunks, g = t / chunks % a.group, n = t / chunks / a.group;
    const double* image = x.data() + (n * channels + g * depth_channels) * plane;
    const PackColumns pack = [&](int64_t k0, int64_t d, int64_t j0, int64_t columns, double* to) {
      windows.pack(image, k0, d, j0, columns, to);
    };
    multiply_add(weights[size_t(g)], 0, rows, pack, c * chunk, std::min(positions, (c + 1) * chunk),
                 reals(y) + (n * out + g * rows) * positions, positions);
  };
  const int64_t work = batch * out * positions * depth;
  parallel_for(batch * a.group * chunks, task, work < (int64_t{1} << 18) ? 1 : 0);
  return {rounded(std::move(y), in[0]->dtype())};
}

bool Conv::depthwise(const Attrs& attrs, const Shape& x, const Shape& w) {
  const Dim group(attrs.group);
  return attrs.group > 1 && x.ranked && w.ranked && x.rank() > 1 && w.rank() > 1 && x[1] == group && w[0] == group &&
         w[1] == Dim(1);
}

bool is_depthwise(const Node& node) {
  return is_a<Conv>(node) && Conv::depthwise(node.as<Conv>(), node.input(0)->type.shape, node.input(1)->type.shape);
}

Cost Conv::cost(const Attrs& a, std::span<const TensorType> in, std::span<const TensorType> out) {
  const Shape &x = in[0].shape, &w = in[1].shape;
  Cost cost;
  if (!x.ranked || !w.ranked) return cost;
  Dim macs = x[0] * w[0] * w[1];
  for (const WindowAxis& axis : window(a, x, w)) macs = macs * useful_taps(axis);
  cost.flops = macs * Dim(2);
  cost.weight_bytes = bytes_of(in[1]);
  if (in.size() > 2 && in[2].dtype != DType::unknown) {
    cost.flops = cost.flops + out[0].shape.elements();
    cost.weight_bytes = cost.weight_bytes + bytes_of(in[2]);
  }
  return cost;
}

}  // namespace opfuse
