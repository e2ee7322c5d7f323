// BatchNorm: per-channel multiply and add as an epilogue or prologue, or folded into the convolution or
// matrix product before it (channel_affine.hpp has the equations).
#include <cmath>

#include "base/parallel.hpp"
#include "expr/domain.hpp"
#include "ops/is_a.hpp"
#include "ops/norm.hpp"
#include "region/channel_affine.hpp"
#include "region/integer_product.hpp"

namespace opfuse {

double ChannelAffine::multiplier(int64_t c) const { return scale.real(c) / std::sqrt(variance.real(c) + epsilon); }
double ChannelAffine::shift(int64_t c) const { return bias.real(c) - mean.real(c) * multiplier(c); }

std::optional<ChannelAffine> constant_affine(const Lowering& lowering, const Node& batch_norm) {
  const Tensor* parts[4] = {};
  for (size_t i = 0; i < 4; ++i) {
    parts[i] = lowering.constant_of(batch_norm.input(i + 1));
    if (parts[i] == nullptr) return std::nullopt;
  }
  return ChannelAffine{*parts[0], *parts[1], *parts[2], *parts[3], batch_norm.as<BatchNorm>().epsilon};
}

const Node* foldable_batch_norm(const Lowering& lowering, const Node& node) {
  const Node* reader = lowering.only_reader(node.output());
  if (reader == nullptr || !is_a<BatchNorm>(*reader) || reader->input(0) != node.output()) return nullptr;
  return constant_affine(lowering, *reader) ? reader : nullptr;
}

Tensor folded_weights(const Tensor& weights, int64_t axis, const ChannelAffine& affine) {
  Tensor folded(weights.dtype(), weights.sizes());
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; i < weights.rank(); ++i) inner *= weights.dim(i);
  const int64_t channels = weights.dim(static_cast<size_t>(axis));
  const int64_t rows = inner == 0 ? 0 : weights.elements() / inner;
  const auto* from = weights.dtype() == DType::f32 ? static_cast<const float*>(weights.data()) : nullptr;
  auto* to = static_cast<float*>(folded.mutable_data());
  parallel_for(rows, [&](int64_t row) {
    const double factor = affine.multiplier(row % channels);
    for (int64_t i = row * inner; i < (row + 1) * inner; ++i) {
      if (from != nullptr)
        to[i] = static_cast<float>(from[i] * factor);
      else
        folded.set_real(i, weights.real(i) * factor);
    }
  });
  return folded;
}

Tensor folded_bias(const Tensor& bias, const ChannelAffine& affine, DType dtype) {
  Tensor folded(dtype, {affine.scale.elements()});
  for (int64_t c = 0; c < folded.elements(); ++c) {
    const double before = bias.empty() ? 0 : bias.real(c);
    folded.set_real(c, before * affine.multiplier(c) + affine.shift(c));
  }
  return folded;
}

namespace {

Tensor channel_table(const ChannelAffine& affine, DType dtype, double (ChannelAffine::*law)(int64_t) const) {
  Tensor table(dtype, {affine.scale.elements()});
  for (int64_t c = 0; c < table.elements(); ++c) table.set_real(c, (affine.*law)(c));
  return table;
}

/// Behind a sum of codes, where quantisers write scale and bias as codes too.
std::optional<Expr> of_codes(Lowering& lowering, const Node& node, const Expr& x, const IndexMap& channel) {
  if (!lowering.requantises() || x.dtype() != DType::f32) return std::nullopt;
  std::vector<Tensor> parts;
  for (size_t i = 1; i <= 4; ++i)
    if (auto part = dequantised_constant(lowering, node.input(i))) parts.push_back(*std::move(part));
  if (parts.size() != 4) return std::nullopt;
  const ChannelAffine affine{parts[0], parts[1], parts[2], parts[3], node.as<BatchNorm>().epsilon};
  std::vector<double> multipliers, shifts;
  for (int64_t c = 0; c < affine.scale.elements(); ++c) {
    multipliers.push_back(affine.multiplier(c));
    shifts.push_back(affine.shift(c));
  }
  return affine_of(lowering, x, multipliers, shifts, channel);
}

Expr pull_batch_norm(Lowering& lowering, const Node& node, size_t result, const IndexMap& map) {
  if (result != 0) decline("training", "BatchNorm statistics are not updated in inference", node);
  const Expr x = lowering.pull(node.input(0), map);
  const IndexMap channel{{map.dims[map.dims.size() > 1 ? 1 : 0]}};
  if (const auto folded = of_codes(lowering, node, x, channel)) return *folded;
  if (const auto affine = constant_affine(lowering, node)) {
    const TensorType type{x.dtype(), affine->scale.type().shape};
    const DType dtype = type.dtype;
    const Expr scale = lowering.pull_made(
        type, [affine, dtype] { return channel_table(*affine, dtype, &ChannelAffine::multiplier); }, channel);
    const Expr shift = lowering.pull_made(
        type, [affine, dtype] { return channel_table(*affine, dtype, &ChannelAffine::shift); }, channel);
    return x * scale + shift;
  }
  Expr part[4];
  for (size_t i = 0; i < 4; ++i) part[i] = cast(lowering.pull(node.input(i + 1), channel), x.dtype());
  return (x - part[2]) / sqrt(part[3] + Expr(node.as<BatchNorm>().epsilon)) * part[0] + part[1];
}

constexpr LowerRule kRules[] = {{.op = "batch_norm", .pull = pull_batch_norm, .pointwise = true}};

}  // namespace

std::span<const LowerRule> norm_rules() { return kRules; }

}  // namespace opfuse
