// Normalisations with statistics of their own: layer, instance, group norm; local response. Two passes as
// the references do: mean first, then the mean of squared distances (never E[x^2] - E[x]^2).
#include "expr/domain.hpp"
#include "ops/norm.hpp"
#include "region/rows.hpp"

namespace opfuse {
namespace {

/// (x - mean) * (1 / sqrt(variance + epsilon)) with the statistics of the row: one division per row, as in ONNX's own
/// definition of LayerNormalization.
Expr normalised(Row& row, double epsilon) {
  const Expr x = row.along();
  const Expr count = row.count(x.dtype());
  const Expr mean = row.lowering.reduce(ReduceKind::sum, x) / count;
  const Expr distance = x - mean;
  const Expr variance = row.lowering.reduce(ReduceKind::sum, distance * distance) / count;
  return (row.here() - mean) * reciprocal(sqrt(variance + Expr(epsilon)));
}

/// LayerNorm's second and third result: mean, and one over the standard deviation, in stages of their own.
void lower_layer_statistics(Lowering& lowering, const Node& node, const std::vector<int64_t>& axes) {
  const Shape& shape = node.input(0)->type.shape;
  for (size_t result = 1; result < node.outputs.size(); ++result) {
    std::vector<Dim> reduce;
    IndexMap map = IndexMap::identity(shape.rank());
    for (int64_t axis : axes) {
      map.dims[static_cast<size_t>(axis)] = IndexExpr{{{1, static_cast<int>(shape.rank() + reduce.size())}}, 0, {}};
      reduce.push_back(shape[static_cast<size_t>(axis)]);
    }
    const Dim count = Shape(reduce).elements();
    lowering.open(Anchor::row, node.outputs[result]->type.shape.dims, std::move(reduce));
    const Expr x = cast(lowering.pull(node.input(0), map), node.outputs[result]->type.dtype);
    const Expr elements = cast(dim_value(count), x.dtype());
    Expr value = lowering.reduce(ReduceKind::sum, x) / elements;
    if (result == 2) {
      const Expr distance = x - value;
      const Expr variance = lowering.reduce(ReduceKind::sum, distance * distance) / elements;
      value = reciprocal(sqrt(variance + Expr(node.as<LayerNorm>().epsilon)));
    }
    lowering.define(node.outputs[result], value);
  }
}

void lower_layer_norm(Lowering& lowering, const Node& node) {
  const LayerNorm::Attrs& attrs = node.as<LayerNorm>();
  const Shape& shape = node.input(0)->type.shape;
  const auto rank = static_cast<int64_t>(shape.rank());
  std::vector<int64_t> axes;
  for (int64_t axis = attrs.axis < 0 ? attrs.axis + rank : attrs.axis; axis < rank; ++axis) axes.push_back(axis);
  lower_layer_statistics(lowering, node, axes);
  Row row = open_row(lowering, node.input(0), axes);
  Expr y = normalised(row, attrs.epsilon);
  for (size_t i = 1; i <= 2; ++i) {
    const Value* operand = node.input(i);
    if (operand == nullptr) continue;
    const Expr e = lowering.pull(operand, broadcast_map(operand->type.shape, shape, lowering.stretches()));
    y = i == 1 ? y * e : y + e;
  }
  lowering.define(node.output(), y);
}

Expr per_channel(Lowering& lowering, const Node& node, size_t input) {
  return lowering.pull(node.input(input), {{IndexExpr{{{1, 1}}, 0, {}}}});
}

void lower_instance_norm(Lowering& lowering, const Node& node) {
  std::vector<int64_t> axes;
  for (size_t i = 2; i < node.input(0)->type.shape.rank(); ++i) axes.push_back(static_cast<int64_t>(i));
  Row row = open_row(lowering, node.input(0), axes);
  const Expr y = normalised(row, node.as<InstanceNorm>().epsilon);
  lowering.define(node.output(), y * per_channel(lowering, node, 1) + per_channel(lowering, node, 2));
}

/// Channels of a group: channel c belongs to group c / (C/G), which starts at (c / (C/G)) * (C/G).
void lower_group_norm(Lowering& lowering, const Node& node) {
  const GroupNorm::Attrs& attrs = node.as<GroupNorm>();
  const Shape& shape = node.input(0)->type.shape;
  std::vector<int64_t> axes;
  for (size_t i = 1; i < shape.rank(); ++i) axes.push_back(static_cast<int64_t>(i));
  Row row = open_row(lowering, node.input(0), axes);
  const Dim channels = floor_div(shape[1], Dim(attrs.num_groups));
  lowering.stage().reduce[0] = channels;
  row.elements = channels;
  for (size_t i = 2; i < shape.rank(); ++i) row.elements = row.elements * shape[i];
  if (attrs.num_groups > 1)  // of one group, statistics are the same for all channels
    row.reduce_map.dims[1].terms.insert(row.reduce_map.dims[1].terms.begin(), IndexTerm{channels, 1, channels});
  const Expr y = normalised(row, attrs.epsilon);
  lowering.define(node.output(), y * per_channel(lowering, node, 1) + per_channel(lowering, node, 2));
}

/// y = x / (bias + alpha/size * sum of x^2 over `size` channels around)^beta, fewer at the borders.
void lower_lrn(Lowering& lowering, const Node& node) {
  const Lrn::Attrs& attrs = node.as<Lrn>();
  const Shape& shape = node.input(0)->type.shape;
  const int tap = static_cast<int>(shape.rank());
  lowering.open(Anchor::row, shape.dims, {Dim(attrs.size)});
  IndexMap map = IndexMap::identity(shape.rank());
  map.dims[1].terms.push_back({1, tap});
  map.dims[1].offset = Dim(-((attrs.size - 1) / 2));
  const DType dtype = node.output()->type.dtype;
  const Expr x = lowering.pull_guarded(node.input(0), map, Expr::constant(dtype, 0), node);
  const Expr sum = lowering.reduce(ReduceKind::sum, x * x);
  const Expr base = Expr(attrs.bias) + Expr(attrs.alpha / static_cast<double>(attrs.size)) * sum;
  const Expr here = lowering.pull(node.input(0), IndexMap::identity(shape.rank()));
  lowering.define(node.output(), here / pow(base, Expr::constant(dtype, attrs.beta)));
}

constexpr LowerRule kRules[] = {{.op = "layer_norm", .anchor = lower_layer_norm},
                                {.op = "instance_norm", .anchor = lower_instance_norm},
                                {.op = "group_norm", .anchor = lower_group_norm},
                                {.op = "lrn", .anchor = lower_lrn}};

}  // namespace

std::span<const LowerRule> statistics_rules() { return kRules; }

}  // namespace opfuse
