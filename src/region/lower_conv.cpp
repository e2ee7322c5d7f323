// Convolution over any number of spatial axes. Domain [n, o, p...]; reduce [i, r...].
//   x at [n, (o / (O/G)) * (C/G) + i, p*stride + r*dilation - pad]      w at [o, i, r...]
// Depthwise (one filter of one channel per channel) is a window: reduce [r...], x at channel o, w at [o, 0, r...].
// Padding is select(in_bounds, x, 0). A BatchNorm that alone reads the result folds into weights and bias.
#include "expr/domain.hpp"
#include "ops/conv.hpp"
#include "region/channel_affine.hpp"
#include "region/integer_product.hpp"
#include "region/sliding.hpp"

namespace opfuse {
namespace {

struct ConvLowering {
  Lowering& lowering;
  const Node& node;
  const Shape& x = node.input(0)->type.shape;
  const Shape& w = node.input(1)->type.shape;
  const Shape& y = node.output()->type.shape;
  const Conv::Attrs& attrs = node.as<Conv>();
  std::vector<WindowAxis> windows = Conv::window(attrs, x, w);
  bool depthwise = Conv::depthwise(attrs, x, w);
  int domain_rank = static_cast<int>(y.rank());
  int first_tap = domain_rank + (depthwise ? 0 : 1);

  void open() {
    std::vector<Dim> reduce;
    if (!depthwise) reduce.push_back(w[1]);
    for (const WindowAxis& window : windows) reduce.emplace_back(window.kernel);
    lowering.open(depthwise ? Anchor::window : Anchor::contraction, y.dims, std::move(reduce));
  }

  /// Padding has the code of zero.
  void run(const IntegerProduct& product) {
    open();
    const Expr x = data(product.data, padding_of(product));
    const Expr w = weight_at(lowering, product, weight_map());
    const Expr sum = lowering.reduce(ReduceKind::sum, widened(product, x) * cast(w, DType::i32));
    lowering.define(node.output(), real_of(lowering, product, sum, channel_map()));
  }

  void run() {
    open();
    const Node* norm = foldable_batch_norm(lowering, node);
    const Tensor* weights = lowering.constant_of(node.input(1));
    const bool bias_known = node.input(2) == nullptr || lowering.constant_of(node.input(2)) != nullptr;
    const bool fold = norm != nullptr && weights != nullptr && bias_known;
    const Expr x_value = data(node.input(0), Expr::constant(node.input(0)->type.dtype, 0));
    const Expr w_value = fold ? folded(*norm, *weights) : lowering.pull(node.input(1), weight_map());
    Expr sum = lowering.reduce(ReduceKind::sum, x_value * w_value);
    if (fold) {
      sum = sum + bias(*norm);
      lowering.mark_done(norm);
    } else if (node.input(2) != nullptr) {
      sum = sum + lowering.pull(node.input(2), channel_map());
    }
    lowering.define(fold ? norm->output() : node.output(), sum);
  }

  Expr data(const Value* value, const Expr& padding) {
    IndexMap map;
    map.dims.push_back(IndexExpr{{{1, 0}}, 0, {}});
    IndexExpr channel;
    if (depthwise) channel.terms.push_back({1, 1});
    if (!depthwise && attrs.group > 1) channel.terms.push_back({w[1], 1, floor_div(w[0], Dim(attrs.group))});
    if (!depthwise) channel.terms.push_back({1, domain_rank});
    map.dims.push_back(std::move(channel));
    for (size_t s = 0; s < windows.size(); ++s)
      map.dims.push_back(window_index(windows[s], static_cast<int>(s) + 2, first_tap + static_cast<int>(s)));
    if (!leaves_input(windows)) return lowering.pull(value, map);
    return lowering.pull_guarded(value, map, padding, node);
  }

  IndexMap weight_map() const {
    IndexMap map;
    map.dims.push_back(IndexExpr{{{1, 1}}, 0, {}});
    map.dims.push_back(depthwise ? IndexExpr{} : IndexExpr{{{1, domain_rank}}, 0, {}});
    for (size_t s = 0; s < windows.size(); ++s)
      map.dims.push_back(IndexExpr{{{1, first_tap + static_cast<int>(s)}}, 0, {}});
    return map;
  }
  static IndexMap channel_map() { return {{IndexExpr{{{1, 1}}, 0, {}}}}; }

  Expr folded(const Node& norm, const Tensor& weights) {
    const ChannelAffine affine = *constant_affine(lowering, norm);
    return lowering.pull_made(
        weights.type(), [weights, affine] { return folded_weights(weights, 0, affine); }, weight_map(), node.input(1));
  }

  Expr bias(const Node& norm) {
    const ChannelAffine affine = *constant_affine(lowering, norm);
    const Tensor* before = lowering.constant_of(node.input(2));
    const Tensor given = before != nullptr ? *before : Tensor();
    const DType dtype = node.output()->type.dtype;
    return lowering.pull_made(
        {dtype, Shape{w[0]}}, [given, affine, dtype] { return folded_bias(given, affine, dtype); }, channel_map());
  }
};

void lower_conv(Lowering& lowering, const Node& node) {
  if (!is_float(node.output()->type.dtype)) decline("dtype", "convolution of integers has no kernel", node);
  ConvLowering conv{lowering, node};
  const std::optional<IntegerProduct> codes = integer_product(lowering, node, 0, !conv.depthwise);
  if (codes) return conv.run(*codes);
  conv.run();
}

constexpr LowerRule kRules[] = {{.op = "conv", .anchor = lower_conv}};

}  // namespace

std::span<const LowerRule> conv_rules() { return kRules; }

}  // namespace opfuse
