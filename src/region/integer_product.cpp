// The bound of the sum is taken from the weights themselves: 255 sum |w| + |shift| < 2^31 for every output channel, so
// no partial sum wraps, in whatever order.
#include "region/integer_product.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "expr/domain.hpp"
#include "ops/conv.hpp"
#include "ops/is_a.hpp"
#include "ops/quantize.hpp"
#include "tensor/number.hpp"

namespace opfuse {
namespace {

constexpr int64_t kLargestCode = 255, kHalfOfCodes = 128;

const Node* dequantize_of(const Lowering& lowering, const Value* value) {
  const Node* node = value ? lowering.lazy_node(value) : nullptr;
  return node && is_a<DequantizeLinear>(*node) && node->output()->type.dtype == DType::f32 ? node : nullptr;
}

bool all_zero(const Tensor& zero_points) {
  for (int64_t i = 0; i < zero_points.elements(); ++i)
    if (zero_points.integer(i) != 0) return false;
  return true;
}

/// The scales of an operand belong to `axis` of it, and so to output channels.
bool are_by_channel(const Node& dequantize, const Tensor& scales, int64_t axis, int64_t outputs) {
  const auto& attrs = dequantize.as<DequantizeLinear>();
  const auto rank = static_cast<int64_t>(dequantize.input(0)->type.shape.rank());
  return attrs.block_size == 0 && scales.elements() == outputs &&
         (attrs.axis < 0 ? attrs.axis + rank : attrs.axis) == axis;
}

std::vector<double> reals_of(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.elements(); ++i) values.push_back(tensor.real(i));
  return values;
}

bool usable(const std::vector<double>& scales) {
  return std::all_of(scales.begin(), scales.end(), [](double s) { return s > 0 && std::isfinite(s); });
}

/// Elements of one output channel lie `inner` apart in `outer` runs.
struct Channels {
  int64_t count = 1, inner = 1;
  Channels(const Tensor& weights, int64_t axis) : count(weights.sizes()[static_cast<size_t>(axis)]) {
    for (size_t d = static_cast<size_t>(axis) + 1; d < weights.sizes().size(); ++d) inner *= weights.sizes()[d];
  }
  int64_t of(int64_t i) const { return i / inner % count; }
};

struct Sums {
  std::vector<int64_t> plain, absolute;  ///< by output channel
};

Sums sums_of(const Tensor& weights, int64_t axis) {
  const Channels channels(weights, axis);
  Sums sums{std::vector<int64_t>(static_cast<size_t>(channels.count)), {}};
  sums.absolute = sums.plain;
  for (int64_t i = 0; i < weights.elements(); ++i) {
    const auto c = static_cast<size_t>(channels.of(i));
    const int64_t w = weights.integer(i);
    sums.plain[c] += w;
    sums.absolute[c] += std::abs(w);
  }
  return sums;
}

/// Codes minus their zero points, one for all or by output channel; nothing where one of them does not fit i8.
std::optional<Tensor> centred(const Tensor& codes, const Tensor* zero, int64_t axis) {
  if (codes.dtype() == DType::i8 && (!zero || all_zero(*zero))) return codes;
  const Channels channels(codes, axis);
  if (zero && zero->elements() != 1 && zero->elements() != channels.count) return std::nullopt;
  Tensor t(DType::i8, codes.sizes());
  for (int64_t i = 0; i < t.elements(); ++i) {
    const int64_t w = codes.integer(i) - (zero ? zero->integer(zero->elements() == 1 ? 0 : channels.of(i)) : 0);
    if (w < integer_min(DType::i8) || w > static_cast<int64_t>(integer_max(DType::i8))) return std::nullopt;
    t.set_integer(i, w);
  }
  return t;
}

std::vector<int64_t> shift_of(const IntegerProduct& p, const Sums& sums) {
  std::vector<int64_t> shift;
  for (size_t c = 0; c < sums.plain.size(); ++c) {
    const int64_t bias = p.bias ? p.bias->integer(p.bias->elements() == 1 ? 0 : static_cast<int64_t>(c)) : 0;
    shift.push_back(bias - (p.zero + p.offset) * sums.plain[c]);
  }
  return shift;
}

Tensor tensor_of(const std::vector<int64_t>& values) {
  Tensor t(DType::i32, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) t.set_integer(static_cast<int64_t>(i), values[i]);
  return t;
}

Tensor rounded_once(const std::vector<double>& values) {
  Tensor t(DType::f32, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) t.set_real(static_cast<int64_t>(i), values[i]);
  return t;
}

/// `v`, which kernels round once; what f32 cannot say would make NaN of a sum that is 0.
double in_single(double v) {
  if (!std::isfinite(static_cast<float>(v)))
    throw DeclineSignal{Decline{"scale_range", "a quotient of scales is beyond f32", {}}};
  return v;
}

Expr real_constant(Lowering& lowering, const std::vector<double>& values, const IndexMap& channels) {
  for (double v : values) in_single(v);
  const TensorType type{DType::f32, Shape{Dim(static_cast<int64_t>(values.size()))}};
  const Expr read = lowering.pull_made(
      type, [values] { return rounded_once(values); }, channels);
  lowering.real_constants()[lowering.stage().reads[static_cast<size_t>(read.index())].index] = values;
  return read;
}

/// The bias, as codes where its scale is that of the sum.
void take_bias(const Lowering& lowering, const Node& node, IntegerProduct& p, const std::vector<double>& single) {
  const Value* bias = node.input(2);
  if (!bias) return;
  const Shape& shape = bias->type.shape;  // [N, 1] has as many numbers as a row where the product is square
  const bool column = shape.rank() > 1 &&
                      std::any_of(shape.dims.begin(), shape.dims.end() - 1, [](const Dim& d) { return d != Dim(1); });
  if (column) decline("float_operand", "the bias is not a row of channels", node);
  if (const Tensor* constant = lowering.constant_of(bias)) {
    p.real_bias = reals_of(*constant);
  } else {
    const Node* dq = dequantize_of(lowering, bias);
    const Tensor* codes = dq ? lowering.constant_of(dq->input(0)) : nullptr;
    const Tensor* scale = dq ? lowering.constant_of(dq->input(1)) : nullptr;
    const Tensor* zero = dq ? lowering.constant_of(dq->input(2)) : nullptr;
    if (!codes || !scale || (dq->input(2) && (!zero || !all_zero(*zero))))
      decline("float_operand", "the bias is not a constant", node);
    const auto factor = [&](size_t c) { return scale->real(scale->elements() == 1 ? 0 : static_cast<int64_t>(c)); };
    bool same = codes->dtype() == DType::i32;
    for (size_t c = 0; c < single.size(); ++c) same = same && factor(c) == single[c];
    if (same) {
      p.bias = codes;
      return;
    }
    for (int64_t i = 0; i < codes->elements(); ++i)
      p.real_bias.push_back(static_cast<double>(codes->integer(i)) * factor(static_cast<size_t>(i)));
  }
  if (p.real_bias.size() == 1) p.real_bias.assign(p.scales.size(), p.real_bias[0]);
  if (p.real_bias.size() != p.scales.size()) decline("float_operand", "the bias is not a row of channels", node);
}

}  // namespace

std::optional<IntegerProduct> integer_product(const Lowering& lowering, const Node& node, int64_t axis, bool offsets) {
  const Node *data = dequantize_of(lowering, node.input(0)), *weights = dequantize_of(lowering, node.input(1));
  if (!data || !weights) return std::nullopt;
  IntegerProduct p;
  p.data = data->input(0);
  p.weights = weights->input(0);
  p.axis = axis;
  const Tensor* codes = lowering.constant_of(p.weights);
  const Tensor *sx = lowering.constant_of(data->input(1)), *sw = lowering.constant_of(weights->input(1));
  const Tensor* zw = lowering.constant_of(weights->input(2));
  if (!codes || !sx || !sw || (data->input(2) && !lowering.constant_of(data->input(2))) || (weights->input(2) && !zw))
    decline("float_operand", "the weights, a scale or a zero point is not constant", node);
  const bool bytes = codes->dtype() == DType::i8 || codes->dtype() == DType::u8;
  const std::optional<Tensor> made = bytes ? centred(*codes, zw, axis) : std::nullopt;
  if (!made) decline("asymmetric_weights", "the weights minus their zero points do not fit i8", node);
  p.codes = *made;
  p.plain = p.codes.data() == codes->data();
  const DType type = p.data->type.dtype;
  if (type != DType::u8 && type != DType::i8) decline("wide_codes", "the data are neither u8 nor i8", node);
  if (type == DType::i8 && offsets) p.offset = kHalfOfCodes;
  const int64_t outputs = codes->sizes()[static_cast<size_t>(axis)];
  if (sx->elements() != 1 && !(is_depthwise(node) && are_by_channel(*data, *sx, 1, outputs)))
    decline("float_operand", "the data have a scale for each channel, and a sum is of several channels", node);
  const std::optional<int64_t> zero = zero_point_of_all(lowering, data->input(2));
  if (!zero) decline("float_operand", "the data have a zero point for each channel", node);
  if (sw->elements() != 1 && !are_by_channel(*weights, *sw, axis, outputs))
    decline("float_operand", "the weights' scales do not belong to output channels", node);
  p.zero = *zero;
  const auto at = [](const Tensor& scale, int64_t c) { return scale.real(scale.elements() == 1 ? 0 : c); };
  std::vector<double> single;  // as exporters round the scale of a bias
  for (int64_t c = 0; c < outputs; ++c) {
    const double x = at(*sx, c), w = at(*sw, c);
    p.scales.push_back(x * w);
    single.push_back(static_cast<double>(static_cast<float>(x) * static_cast<float>(w)));
  }
  if (!usable(p.scales)) decline("float_operand", "a scale is not positive and finite", node);
  take_bias(lowering, node, p, single);
  const Sums sums = sums_of(p.codes, axis);
  const std::vector<int64_t> shift = shift_of(p, sums);
  for (size_t c = 0; c < shift.size(); ++c)
    if (kLargestCode * sums.absolute[c] + std::abs(shift[c]) >= int64_t{1} << 31)
      decline("accumulator", "a sum of the codes may leave i32", node);
  return p;
}

Expr weight_at(Lowering& lowering, const IntegerProduct& p, const IndexMap& map) {
  if (p.plain) return lowering.pull(p.weights, map);
  return lowering.pull_made(
      p.codes.type(), [codes = p.codes] { return codes; }, map, p.weights);
}

Expr widened(const IntegerProduct& p, const Expr& x) {
  const Expr whole = cast(x, DType::i32);
  return p.offset == 0 ? whole : whole + Expr::integer(DType::i32, p.offset);
}

Expr padding_of(const IntegerProduct& p) { return Expr::integer(p.data->type.dtype, p.zero); }

Expr real_of(Lowering& lowering, const IntegerProduct& p, const Expr& sum, const IndexMap& channels) {
  lowering.set_requantises();
  Expr all = sum;
  if (p.zero + p.offset != 0 || p.bias) {
    const TensorType type{DType::i32, Shape{Dim(static_cast<int64_t>(p.scales.size()))}};
    IntegerProduct kept = p;
    const Tensor bias = p.bias ? *p.bias : Tensor();
    all = all + lowering.pull_made(
                    type,
                    [kept, bias]() mutable {
                      if (kept.bias) kept.bias = &bias;
                      return tensor_of(shift_of(kept, sums_of(kept.codes, kept.axis)));
                    },
                    channels, p.weights);
  }
  Expr real = cast(all, DType::f32) * real_constant(lowering, p.scales, channels);
  if (!p.real_bias.empty()) real = real + real_constant(lowering, p.real_bias, channels);
  return real;
}

namespace {

/// The doubles that a constant row was rounded from, and the channel that it is read at.
struct KnownRow {
  const std::vector<double>& values;
  IndexMap channels;
};

std::optional<KnownRow> known_row(Lowering& lowering, const Expr& e) {
  if (e.op() != ExprOp::read) return std::nullopt;
  const Read& read = lowering.stage().reads[static_cast<size_t>(e.index())];
  const auto at = read.stage < 0 ? lowering.real_constants().find(read.index) : lowering.real_constants().end();
  return at == lowering.real_constants().end() ? std::nullopt : std::optional(KnownRow{at->second, read.map});
}

}  // namespace

Expr affine_of(Lowering& lowering, const Expr& x, const std::vector<double>& multipliers,
               const std::vector<double>& shifts, const IndexMap& channels) {
  std::vector<double> factors = multipliers;
  Expr rest = x;
  if (x.op() == ExprOp::mul)
    for (size_t side : {1U, 0U}) {
      const Expr& factor = x.args()[side];
      const std::optional<KnownRow> row = known_row(lowering, factor);
      if (!factor.is_constant() && !(row && row->channels == channels)) continue;
      for (size_t c = 0; c < factors.size(); ++c) factors[c] *= row ? row->values[c] : factor.value();
      rest = x.args()[1 - side];
      break;
    }
  return rest * real_constant(lowering, factors, channels) + real_constant(lowering, shifts, channels);
}

std::optional<Tensor> dequantised_constant(const Lowering& lowering, const Value* value) {
  if (const Tensor* constant = lowering.constant_of(value)) return *constant;
  const Node* node = dequantize_of(lowering, value);
  if (!node) return std::nullopt;
  std::vector<const Tensor*> operands;
  for (const Value* operand : node->inputs) {
    operands.push_back(operand ? lowering.constant_of(operand) : nullptr);
    if (operand && !operands.back()) return std::nullopt;
  }
  return DequantizeLinear::reference(node->as<DequantizeLinear>(), operands, Precision::typed).front();
}

std::optional<int64_t> zero_point_of_all(const Lowering& lowering, const Value* zero_points) {
  if (!zero_points) return 0;
  const Tensor* constant = lowering.constant_of(zero_points);
  if (!constant || is_float(constant->dtype()) || constant->elements() == 0) return std::nullopt;
  for (int64_t i = 1; i < constant->elements(); ++i)
    if (constant->integer(i) != constant->integer(0)) return std::nullopt;
  return constant->integer(0);
}

Expr factor_of(Lowering& lowering, const Steps& steps) {
  return steps.single() ? Expr::constant(DType::f32, steps.values[0])
                        : real_constant(lowering, steps.values, steps.channels);
}

namespace {

/// Numbers, one or one by channel, over steps; nothing: they are not by the same channel.
std::optional<Expr> quotient(Lowering& lowering, const std::vector<double>& numbers, const IndexMap& map,
                             const Steps& steps) {
  const bool one = numbers.size() == 1;
  if (!one && !steps.single() && !(map == steps.channels)) return std::nullopt;
  std::vector<double> quotients = one ? steps.values : numbers;
  for (size_t c = 0; c < quotients.size(); ++c)
    quotients[c] = numbers[one ? 0 : c] / steps.values[steps.single() ? 0 : c];
  if (quotients.size() == 1) return Expr::constant(DType::f32, in_single(quotients[0]));
  return real_constant(lowering, quotients, one ? steps.channels : map);
}

/// A constant over steps; nothing: it is none.
std::optional<Expr> quotient(Lowering& lowering, const Expr& x, const Steps& steps) {
  if (x.is_constant()) return x.value() == 0 ? x : *quotient(lowering, {x.value()}, {}, steps);
  const std::optional<KnownRow> row = known_row(lowering, x);
  return row ? quotient(lowering, row->values, row->channels, steps) : std::nullopt;
}

}  // namespace

Expr divided(Lowering& lowering, const Expr& x, const Steps& steps) {
  if (auto known = quotient(lowering, x, steps)) return *known;
  switch (x.op()) {
    case ExprOp::mul:
      for (size_t side : {1U, 0U})
        if (auto known = quotient(lowering, x.args()[side], steps)) return x.args()[1 - side] * *known;
      break;
    case ExprOp::add:
    case ExprOp::sub:
    case ExprOp::max:
    case ExprOp::min:
      return Expr::make(x.op(), {divided(lowering, x.args()[0], steps), divided(lowering, x.args()[1], steps)});
    default:
      break;
  }
  return x * *quotient(lowering, {1.0}, {}, steps);
}

}  // namespace opfuse
