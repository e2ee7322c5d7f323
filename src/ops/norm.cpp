// Normalisations. All are x * k + s with k and s from statistics of a set of elements; the sets are
// (n, c) planes, groups of channels or trailing axes, contiguous in every case. Variances are two-pass.
#include "ops/norm.hpp"

#include <algorithm>
#include <cmath>

#include "base/fail.hpp"
#include "base/parallel.hpp"
#include "ops/checks.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {
namespace {

struct Moments {
  double mean = 0, inverse_deviation = 0;
};

Moments moments(const double* x, int64_t n, double epsilon) {
  double sum = 0, square = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) square += (x[i] - mean) * (x[i] - mean);
  return {mean, 1 / std::sqrt(square / static_cast<double>(n) + epsilon)};
}

int threads_for(int64_t elements) { return elements < (int64_t{1} << 15) ? 1 : 0; }

int64_t channels_of(const Tensor& x) { return x.rank() > 1 ? x.dim(1) : 1; }
Dim channels_of(const Shape& x) { return x.rank() > 1 ? x[1] : Dim(1); }

/// Elements of `t` broadcast to the trailing dimensions of `sizes` (checked by inference).
std::vector<double> broadcast_values(const Tensor& t, const std::vector<int64_t>& sizes) {
  const Reals values(t);
  std::vector<double> result(size_t(product(sizes, 0, sizes.size())));
  for (int64_t i = 0; i < int64_t(result.size()); ++i) {
    int64_t rest = i, index = 0, pitch = 1;
    for (size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) {
      const size_t from_end = sizes.size() - d;
      if (from_end > t.rank()) break;
      const int64_t size = t.dim(t.rank() - from_end);
      if (size != 1) index += rest % sizes[d] * pitch;
      pitch *= size;
    }
    result[size_t(i)] = values[index];
  }
  return result;
}

}  // namespace

OpSpec BatchNorm::spec() {
  return {.name = "batch_norm",
          .inputs = {{"x"}, {"scale"}, {"b"}, {"mean"}, {"var"}},
          .outputs = {{"y"}},
          .kind = OpKind::elementwise,
          .flops_per_element = 2,
          .doc = "Batch normalisation with given statistics (inference)."};
}

std::vector<TensorType> BatchNorm::infer(const Attrs& a, const Inference& in) {
  if (a.training_mode)
    throw fail(E::unsupported_attribute,
               "training_mode = 1 computes statistics of the batch; opfuse runs inference only")
        .hint("export the model in eval mode");
  if (in.outputs() > 1)
    throw fail(E::unsupported_attribute, "{} outputs are asked for; running statistics exist only in training",
               in.outputs())
        .hint("export the model in eval mode");
  require_float(in, 0);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  require_min_rank(in, 0, 1);
  static constexpr const char* kNames[] = {"x", "scale", "b", "mean", "var"};
  for (size_t i = 1; i < 5; ++i) {
    require_float(in, i);
    require_vector(in, i, channels_of(in.shape(0)), kNames[i]);
  }
  return {{in.dtype(0), in.shape(0)}};
}

std::vector<Tensor> BatchNorm::reference(const Attrs& a, Tensors in, Precision) {
  const Reals x(*in[0]), scale(*in[1]), b(*in[2]), mean(*in[3]), var(*in[4]);
  const int64_t channels = channels_of(*in[0]);
  const int64_t plane = in[0]->rank() > 1 ? product(in[0]->sizes(), 2, in[0]->rank()) : 1;
  Tensor y(DType::f64, in[0]->sizes());
  const int64_t planes = in[0]->rank() == 0 ? 0 : in[0]->dim(0) * channels;
  double* out = reals(y);
  parallel_for(
      planes,
      [&](int64_t p) {
        const int64_t c = p % channels;
        const double k = scale[c] / std::sqrt(var[c] + a.epsilon), m = mean[c], s = b[c];
        const double* from = x.data() + p * plane;
        double* to = out + p * plane;
        for (int64_t i = 0; i < plane; ++i) to[i] = (from[i] - m) * k + s;
      },
      threads_for(planes * plane));
  return {rounded(std::move(y), in[0]->dtype())};
}

Cost BatchNorm::cost(const Attrs&, std::span<const TensorType> in, std::span<const TensorType> out) {
  if (!out[0].shape.ranked) return {};
  Cost cost{.flops = out[0].shape.elements() * Dim(2)};
  for (size_t i = 1; i < in.size(); ++i) cost.weight_bytes = cost.weight_bytes + bytes_of(in[i]);
  return cost;
}

OpSpec InstanceNorm::spec() {
  return {.name = "instance_norm",
          .inputs = {{"x"}, {"scale"}, {"b"}},
          .outputs = {{"y"}},
          .kind = OpKind::reduction,
          .flops_per_element = 7,
          .doc = "Normalisation of each channel of each image by its own statistics."};
}

std::vector<TensorType> InstanceNorm::infer(const Attrs&, const Inference& in) {
  require_float(in, 0);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  require_min_rank(in, 0, 3);
  require_vector(in, 1, in.shape(0)[1], "scale");
  require_vector(in, 2, in.shape(0)[1], "b");
  return {{in.dtype(0), in.shape(0)}};
}

std::vector<Tensor> InstanceNorm::reference(const Attrs& a, Tensors in, Precision p) {
  return GroupNorm::reference({.epsilon = a.epsilon, .num_groups = std::max<int64_t>(in[0]->dim(1), 1)}, in, p);
}

OpSpec GroupNorm::spec() {
  return {.name = "group_norm",
          .inputs = {{"x"}, {"scale"}, {"b"}},
          .outputs = {{"y"}},
          .kind = OpKind::reduction,
          .flops_per_element = 7,
          .doc = "Normalisation of groups of channels of each image by their own statistics."};
}

std::vector<TensorType> GroupNorm::infer(const Attrs& a, const Inference& in) {
  if (a.num_groups < 1) throw fail(E::bad_attribute, "num_groups is {}; at least 1 is expected", a.num_groups);
  require_float(in, 0);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  require_min_rank(in, 0, 3);
  const Dim channels = in.shape(0)[1];
  if (channels.is_constant() && channels.value() % a.num_groups != 0)
    throw fail(E::channel_mismatch, "{} channels cannot be split into {} groups", channels.text(), a.num_groups);
  assume(DimRule::multiple, channels, a.num_groups, "channels are split into groups");
  require_vector(in, 1, channels, "scale");
  require_vector(in, 2, channels, "b");
  return {{in.dtype(0), in.shape(0)}};
}

std::vector<Tensor> GroupNorm::reference(const Attrs& a, Tensors in, Precision) {
  const Reals x(*in[0]), scale(*in[1]), b(*in[2]);
  const int64_t channels = in[0]->dim(1), plane = product(in[0]->sizes(), 2, in[0]->rank());
  const int64_t per_group = channels / a.num_groups;
  Tensor y(DType::f64, in[0]->sizes());
  double* out = reals(y);
  parallel_for(
      in[0]->dim(0) * a.num_groups,
      [&](int64_t group) {
        const double* from = x.data() + group * per_group * plane;
        const Moments m = moments(from, per_group * plane, a.epsilon);
        for (int64_t i = 0; i < per_group * plane; ++i) {
          const int64_t c = (group * per_group + i / plane) % channels;
          out[group * per_group * plane + i] = (from[i] - m.mean) * m.inverse_deviation * scale[c] + b[c];
        }
      },
      threads_for(y.elements()));
  return {rounded(std::move(y), in[0]->dtype())};
}

/// Open dimensions are taken to fit; a run checks that.
static void require_broadcasts_to(const Inference& in, size_t i, const Shape& x) {
  const Shape& own = in.shape(i);
  bool fits = own.rank() <= x.rank();
  for (size_t d = 0; fits && d < own.rank(); ++d) {
    const Dim& axis = x[x.rank() - own.rank() + d];
    fits = own[d] == Dim(1) || may_equal(own[d], axis);
  }
  if (!fits)
    throw fail(E::shape_mismatch, "operand {} has shape {}, which does not broadcast to {}", i, own.text(), x.text());
  for (size_t d = 0; d < own.rank(); ++d)
    assume(DimRule::one_or_equal, own[d], x[x.rank() - own.rank() + d],
           fmt::format("operand {} broadcasts to the first", i));
}

OpSpec LayerNorm::spec() {
  return {.name = "layer_norm",
          .inputs = {{"x"}, {"scale"}, {.name = "b", .optional = true}},
          .outputs = {{"y"}, {.name = "mean", .optional = true}, {.name = "inverse_deviation", .optional = true}},
          .kind = OpKind::reduction,
          .flops_per_element = 7,
          .doc = "Normalisation over all axes from `axis` on."};
}

std::vector<TensorType> LayerNorm::infer(const Attrs& a, const Inference& in) {
  require_float(in, 0);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  const Shape& x = in.shape(0);
  const size_t axis = normalize_axis(a.axis, x.rank());
  for (size_t i = 1; i < 3; ++i)
    if (in.has(i)) require_broadcasts_to(in, i, x);
  std::vector<TensorType> types = {{in.dtype(0), x}};
  Shape statistics = x;
  for (size_t i = axis; i < x.rank(); ++i) statistics[i] = 1;
  while (types.size() < in.outputs()) types.push_back({DType::f32, statistics});
  return types;
}

std::vector<Tensor> LayerNorm::reference(const Attrs& a, Tensors in, Precision precision) {
  const std::vector<int64_t>& sizes = in[0]->sizes();
  const size_t axis = normalize_axis(a.axis, sizes.size());
  const int64_t rows = product(sizes, 0, axis), n = product(sizes, axis, sizes.size());
  const Reals x(*in[0]);
  // Operands of the normalised shape repeat every n elements; wider ones are spread over the whole tensor.
  const bool narrow =
      in[1]->rank() <= sizes.size() - axis && (in.size() < 3 || !in[2] || in[2]->rank() <= sizes.size() - axis);
  const std::vector<int64_t> spread = narrow ? std::vector<int64_t>(sizes.begin() + int64_t(axis), sizes.end()) : sizes;
  const std::vector<double> scale = broadcast_values(*in[1], spread);
  const std::vector<double> bias = in.size() > 2 && in[2] ? broadcast_values(*in[2], spread) : std::vector<double>{};
  std::vector<int64_t> statistic_sizes = sizes;
  std::fill(statistic_sizes.begin() + int64_t(axis), statistic_sizes.end(), 1);
  Tensor y(DType::f64, sizes), mean(DType::f64, statistic_sizes), deviation(DType::f64, statistic_sizes);
  double *out = reals(y), *means = reals(mean), *deviations = reals(deviation);
  parallel_for(
      rows,
      [&](int64_t row) {
        const Moments m = moments(x.data() + row * n, n, a.epsilon);
        means[row] = m.mean;
        deviations[row] = m.inverse_deviation;
        const int64_t base = narrow ? 0 : row * n;
        for (int64_t i = 0; i < n; ++i)
          out[row * n + i] = (x[row * n + i] - m.mean) * m.inverse_deviation * scale[size_t(base + i)] +
                             (bias.empty() ? 0.0 : bias[size_t(base + i)]);
      },
      threads_for(y.elements()));
  const DType statistic = precision == Precision::exact ? DType::f64 : DType::f32;
  return {rounded(std::move(y), in[0]->dtype()), rounded(std::move(mean), statistic),
          rounded(std::move(deviation), statistic)};
}

OpSpec Lrn::spec() {
  return {.name = "lrn",
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .kind = OpKind::reduction,
          .flops_per_element = 8,
          .doc = "Local response normalisation over neighbouring channels."};
}

std::vector<TensorType> Lrn::infer(const Attrs& a, const Inference& in) {
  if (a.size < 1) throw fail(E::bad_attribute, "size is {}; at least 1 is expected", a.size);
  require_float(in, 0);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  require_min_rank(in, 0, 2);
  return {{in.dtype(0), in.shape(0)}};
}

std::vector<Tensor> Lrn::reference(const Attrs& a, Tensors in, Precision) {
  const Reals x(*in[0]);
  const int64_t channels = in[0]->dim(1), plane = product(in[0]->sizes(), 2, in[0]->rank());
  const int64_t before = (a.size - 1) / 2, after = a.size - 1 - before;
  Tensor y(DType::f64, in[0]->sizes());
  double* out = reals(y);
  parallel_for(
      in[0]->dim(0) * channels,
      [&](int64_t p) {
        const int64_t c = p % channels, image = p - c;
        const int64_t first = std::max<int64_t>(0, c - before),
                      last = std::min(channels - 1, c + std::min(after, channels));
        for (int64_t i = 0; i < plane; ++i) {
          double sum = 0;
          for (int64_t k = first; k <= last; ++k) {
            const double v = x[(image + k) * plane + i];
            sum += v * v;
          }
          const double norm = std::pow(a.bias + a.alpha / static_cast<double>(a.size) * sum, a.beta);
          out[p * plane + i] = x[p * plane + i] / norm;
        }
      },
      threads_for(y.elements()));
  return {rounded(std::move(y), in[0]->dtype())};
}

}  // namespace opfuse
