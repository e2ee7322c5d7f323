// Movement of elements as index maps: each rule gives the operand's coordinates at the result's, composed
// with the coordinates the reader asks for. Reshapes and transposes can also move a stage's store.
#include <algorithm>

#include "expr/domain.hpp"
#include "ops/concat.hpp"
#include "ops/is_a.hpp"
#include "ops/pad.hpp"
#include "ops/slice.hpp"
#include "ops/space_depth.hpp"
#include "ops/split.hpp"
#include "region/computed_indices.hpp"
#include "region/lowering.hpp"

namespace opfuse {
namespace {

const Shape& shape_in(const Node& node) { return node.input(0)->type.shape; }
const Shape& shape_out(const Node& node, size_t result = 0) { return node.outputs[result]->type.shape; }
size_t wrapped(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

Expr zero_of(DType dtype) { return is_float(dtype) ? Expr::constant(dtype, 0) : Expr::integer(dtype, 0); }

Expr pull_through(Lowering& lowering, const Node& node, const IndexMap& inner, const IndexMap& map) {
  return lowering.pull(node.input(0), compose(inner, map, lowering.extents()));
}

// ---- reshape, flatten, squeeze, unsqueeze, identity: the same elements in the same order
Expr pull_reshape(Lowering& lowering, const Node& node, size_t result, const IndexMap& map) {
  if (result != 0) return Expr::integer(DType::boolean, 1);  // the mask of a Dropout that drops nothing
  return pull_through(lowering, node, reshape_map(shape_out(node), shape_in(node)), map);
}
std::optional<IndexMap> push_reshape(Lowering&, const Node& node) {
  return reshape_map(shape_in(node), shape_out(node));
}

// ---- transpose: result dimension i is operand dimension perm[i]
std::vector<size_t> permutation(const Node& node) {
  const std::vector<int64_t> given = AttrView(node).integers("perm");
  const size_t rank = shape_in(node).rank();
  std::vector<size_t> perm;
  for (size_t i = 0; i < rank; ++i) perm.push_back(given.empty() ? rank - 1 - i : wrapped(given[i], rank));
  return perm;
}
Expr pull_transpose(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  IndexMap inner = map;
  const std::vector<size_t> perm = permutation(node);
  for (size_t i = 0; i < perm.size(); ++i) inner.dims[perm[i]] = map.dims[i];
  return lowering.pull(node.input(0), inner);
}
std::optional<IndexMap> push_transpose(Lowering&, const Node& node) {
  IndexMap map;
  for (size_t axis : permutation(node)) map.dims.push_back(IndexExpr{{{1, static_cast<int>(axis)}}, 0, {}});
  return map;
}

Expr pull_expand(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  return pull_through(lowering, node, broadcast_map(shape_in(node), shape_out(node), lowering.stretches()), map);
}

// ---- slice, split: start + step * i
Dim slice_start(const Node& node, const Dim& size, const Dim& start, const Dim& end, int64_t step) {
  if (size.is_constant() && start.is_constant() && end.is_constant())
    return Dim(slice_axis(start.value(), end.value(), step, size.value()).start);
  const auto at = start.constant();
  if (step > 0 && !at) return min(max(start, Dim(0)), size);  // symbolic positions count from the start
  if (step > 0) return *at < 0 ? max(size + start, Dim(0)) : size.is_constant() ? min(start, size) : start;
  if (at == -1 || (at && *at > (int64_t{1} << 30))) return size - Dim(1);
  decline("symbolic_slice", "a backward slice of a symbolic dimension from a fixed position", node);
}
IndexMap slice_map(Lowering& lowering, const Node& node) {
  const Slice::Attrs& attrs = node.as<Slice>();
  const auto positions = [&](size_t input, const std::vector<int64_t>& given) {
    return node.input(input) ? lowering.positions_of(node, input) : std::vector<Dim>(given.begin(), given.end());
  };
  const std::vector<Dim> starts = positions(1, attrs.starts), ends = positions(2, attrs.ends);
  const auto axes = node.input(3) != nullptr ? lowering.integers_of(node, 3) : attrs.axes;
  const auto steps = node.input(4) != nullptr ? lowering.integers_of(node, 4) : std::vector<int64_t>{};
  const Shape& x = shape_in(node);
  IndexMap inner = IndexMap::identity(x.rank());
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t axis = axes.empty() ? i : wrapped(axes[i], x.rank());
    const int64_t step = steps.empty() ? 1 : steps[i];
    inner.dims[axis].terms[0].coef = step;
    inner.dims[axis].offset = slice_start(node, x[axis], position_from_start(starts[i], step, x[axis]), ends[i], step);
  }
  return inner;
}
Expr pull_slice(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  return pull_through(lowering, node, slice_map(lowering, node), map);
}
Expr pull_split(Lowering& lowering, const Node& node, size_t result, const IndexMap& map) {
  const size_t axis = wrapped(node.as<Split>().axis, shape_in(node).rank());
  IndexMap inner = IndexMap::identity(shape_in(node).rank());
  for (size_t i = 0; i < result; ++i)
    inner.dims[axis].offset = inner.dims[axis].offset + node.outputs[i]->type.shape[axis];
  return pull_through(lowering, node, inner, map);
}

// ---- concat([x[k:], x[:k]]), a roll: the coordinate wraps around, so one read is enough. Not along the last axis,
// whose elements are loaded side by side
struct Rolled {
  const Node* slice;  ///< of the value that is rolled
  IndexMap map;
};
std::optional<Rolled> rolled(Lowering& lowering, const Node& concat, size_t axis) {
  const Shape& y = shape_out(concat);
  if (concat.inputs.size() != 2 || axis + 1 == y.rank() || !reads_at_computed(lowering.stage().anchor)) return {};
  const Node *back = lowering.lazy_node(concat.inputs[0]), *front = lowering.lazy_node(concat.inputs[1]);
  if (!back || !front || !is_a<Slice>(*back) || !is_a<Slice>(*front) || back->input(0) != front->input(0)) return {};
  if (!(shape_in(*back) == y)) return {};
  const Dim first = shape_out(*back)[axis];
  IndexMap from_back = slice_map(lowering, *back);
  Rolled roll{back, IndexMap::identity(y.rank())};
  if (!(slice_map(lowering, *front) == roll.map)) return {};
  const Dim shift = from_back.dims[axis].offset;
  from_back.dims[axis].offset = 0;
  if (!(from_back == roll.map) || !(shift + first == y[axis])) return {};
  // Where another part of a concatenation is chosen, coordinates are beyond the ends.
  const Expr at = minimum(maximum(index_value(roll.map.dims[axis]), dim_value(0)), dim_value(y[axis] - Dim(1)));
  roll.map.dims[axis].dynamic = select(less(at, dim_value(first)), at + dim_value(shift), at - dim_value(first));
  return roll;
}

// ---- concat: the first operand whose coordinates are inside; where an operand moves elements itself (the halves that
// a rotary embedding exchanges), what its reads are inside of is another tensor, and the coordinate along the axis
// tells
Expr pull_concat(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  const size_t axis = wrapped(node.as<Concat>().axis, shape_out(node).rank());
  if (const auto turned = rolled(lowering, node, axis)) return pull_through(lowering, *turned->slice, turned->map, map);
  Dim offset = 0;
  std::vector<IndexMap> maps;
  for (const Value* input : node.inputs) {
    IndexMap inner = IndexMap::identity(shape_out(node).rank());
    inner.dims[axis].offset = Dim(0) - offset;
    maps.push_back(compose(inner, map, lowering.extents()));
    offset = offset + input->type.shape[axis];
  }
  if (node.inputs.size() == 1) return lowering.pull(node.inputs[0], maps[0]);
  Expr value = zero_of(node.output()->type.dtype);
  for (size_t i = node.inputs.size(); i-- > 0;) {
    const Expr before_end = less(index_value(maps[i].dims[axis]), dim_value(node.inputs[i]->type.shape[axis]));
    value = lowering.pull_where(node.inputs[i], maps[i], before_end, value, node);
  }
  return value;
}

// ---- pad
/// The coordinate moved back inside by the mode's law.
Expr padded_coordinate(PadMode mode, const Expr& at, const Dim& size) {
  const Expr zero = dim_value(0), last = dim_value(size - Dim(1)), extent = dim_value(size);
  if (mode == PadMode::edge) return minimum(maximum(at, zero), last);
  if (mode == PadMode::wrap) return mod(mod(at, extent) + extent, extent);
  // Reflection has period 2 (size - 1); folded twice it stays inside for any amount of padding.
  const Expr period = dim_value(max((size - Dim(1)) * Dim(2), Dim(1)));
  const Expr phase = mod(mod(at, period) + period, period);
  return minimum(phase, period - phase);
}
Expr pull_pad(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  const Pad::Attrs& attrs = node.as<Pad>();
  const Shape& x = shape_in(node);
  const std::vector<Dim> pads = node.input(1)
                                    ? lowering.positions_of(node, 1)  // of shapes: up to a multiple of a window
                                    : std::vector<Dim>(attrs.pads.begin(), attrs.pads.end());
  const auto grows = [](const Dim& amount) { return !amount.is_constant() || amount.value() > 0; };
  const auto axes = node.input(3) != nullptr ? lowering.integers_of(node, 3) : std::vector<int64_t>{};
  const size_t count = axes.empty() ? x.rank() : axes.size();
  IndexMap inner = IndexMap::identity(x.rank());
  bool outside = false;
  for (size_t i = 0; i < count; ++i) {
    const size_t axis = axes.empty() ? i : wrapped(axes[i], x.rank());
    inner.dims[axis].offset = Dim(0) - pads[i];
    if (!grows(pads[i]) && !grows(pads[i + count])) continue;
    outside = true;
    if (attrs.mode != PadMode::constant)
      inner.dims[axis].dynamic = padded_coordinate(attrs.mode, index_value(inner.dims[axis]), x[axis]);
  }
  const IndexMap at = compose(inner, map, lowering.extents());
  if (attrs.mode != PadMode::constant || !outside) return lowering.pull(node.input(0), at);
  const DType dtype = node.output()->type.dtype;
  Expr fill =
      is_float(dtype) ? Expr::constant(dtype, attrs.value) : Expr::integer(dtype, static_cast<int64_t>(attrs.value));
  if (const Value* value = node.input(2); value != nullptr) {
    const Tensor* constant = lowering.constant_of(value);
    if (constant == nullptr) {
      IndexMap first;
      first.dims.resize(value->type.shape.rank());
      fill = lowering.pull(value, first);
    } else {
      fill = is_float(dtype) ? Expr::constant(dtype, constant->real(0)) : Expr::integer(dtype, constant->integer(0));
    }
  }
  return lowering.pull_guarded(node.input(0), at, fill, node);
}

Expr pull_tile(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  const Shape &x = shape_in(node), &y = shape_out(node);
  IndexMap inner;
  for (size_t i = 0; i < x.rank(); ++i) {
    IndexExpr dim;
    if (!(x[i] == Dim(1))) dim.terms.push_back({1, static_cast<int>(i), 1, x[i] == y[i] ? Dim(0) : x[i]});
    inner.dims.push_back(std::move(dim));
  }
  return pull_through(lowering, node, inner, map);
}

// ---- depth_to_space, space_to_depth: channel = (block row, block column, c) or (c, block row, block column)
Expr pull_depth_to_space(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  const DepthToSpace::Attrs& attrs = node.as<DepthToSpace>();
  const Dim b = attrs.blocksize, channels = shape_out(node)[1];
  const bool dcr = attrs.mode == DepthToSpaceMode::DCR;
  IndexMap inner = IndexMap::identity(4);
  inner.dims[1].terms = {
      {dcr ? b * channels : b, 2, 1, b}, {dcr ? channels : Dim(1), 3, 1, b}, {dcr ? Dim(1) : b * b, 1}};
  inner.dims[2].terms = {{1, 2, b}};
  inner.dims[3].terms = {{1, 3, b}};
  return pull_through(lowering, node, inner, map);
}
Expr pull_space_to_depth(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  const Dim b = node.as<SpaceToDepth>().blocksize, channels = shape_in(node)[1];
  IndexMap inner = IndexMap::identity(4);
  inner.dims[1].terms = {{1, 1, 1, channels}};
  inner.dims[2].terms = {{b, 2}, {1, 1, channels * b}};
  inner.dims[3].terms = {{b, 3}, {1, 1, channels, b}};
  return pull_through(lowering, node, inner, map);
}

// ---- trilu: keeps j - i >= k (upper) or <= k (lower)
Expr pull_trilu(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  Expr k = dim_value(0);
  if (const Value* operand = node.input(1); operand != nullptr) {
    IndexMap first;
    first.dims.resize(operand->type.shape.rank());
    const Tensor* constant = lowering.constant_of(operand);
    k = constant != nullptr ? dim_value(Dim(constant->integer(0))) : lowering.pull(operand, first);
  }
  const size_t rank = shape_in(node).rank();
  const Expr difference = index_value(map.dims[rank - 1]) - index_value(map.dims[rank - 2]);
  const Expr kept = AttrView(node).flag("upper", true) ? greater_equal(difference, k) : less_equal(difference, k);
  const Expr x = lowering.pull(node.input(0), map);
  return select(kept, x, zero_of(x.dtype()));
}

constexpr LowerRule kRules[] = {{.op = "reshape", .pull = pull_reshape, .push = push_reshape},
                                {.op = "flatten", .pull = pull_reshape, .push = push_reshape},
                                {.op = "squeeze", .pull = pull_reshape, .push = push_reshape},
                                {.op = "unsqueeze", .pull = pull_reshape, .push = push_reshape},
                                {.op = "identity", .pull = pull_reshape, .push = push_reshape},
                                {.op = "dropout", .pull = pull_reshape, .push = push_reshape},
                                {.op = "transpose", .pull = pull_transpose, .push = push_transpose},
                                {.op = "expand", .pull = pull_expand},
                                {.op = "slice", .pull = pull_slice},
                                {.op = "split", .pull = pull_split},
                                {.op = "concat", .pull = pull_concat},
                                {.op = "pad", .pull = pull_pad},
                                {.op = "tile", .pull = pull_tile},
                                {.op = "depth_to_space", .pull = pull_depth_to_space},
                                {.op = "space_to_depth", .pull = pull_space_to_depth},
                                {.op = "trilu", .pull = pull_trilu, .pointwise = true}};

}  // namespace

std::span<const LowerRule> move_rules() { return kRules; }

}  // namespace opfuse
