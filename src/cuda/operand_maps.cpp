// A tensor map has up to five dimensions with strides of their own, the first without. Two ways to see an operand:
//
//   boxes    [k, taps, rows, batch], each the axes of a kind that nest into one: plain products, weights of a window
//   pixels   the tensor's own dimensions [channels, w, h, images]: rows are places of a window's corner (im2col), which
//            moves `coef` at a time from `offset` on; the window's element is an argument of the copy
//
// What the guard of a padded image leaves out lies outside the tensor, and is zero.
#include "cuda/operand_maps.hpp"

#include <algorithm>

#include "cuda/mma_operands.hpp"
#include "cuda/skeletons.hpp"
#include "cuda/vector_body.hpp"
#include "kernel/reads.hpp"

namespace opfuse::cuda {
namespace {

constexpr int64_t kBoxBytes = 128, kMostStep = 8, kAligned = 16;

int64_t bytes_of(DType dtype) { return static_cast<int64_t>(byte_size(dtype)); }

/// Axes that walk memory as one: `size` elements `step` apart.
struct Run {
  Dim size = 1;
  int64_t step = 0;
  std::vector<std::pair<int, int64_t>> terms;
};

/// Outermost first; empty where a step is not known.
std::optional<std::vector<Run>> runs_of(const std::vector<int>& axes, const std::vector<Dim>& extents,
                                        const IndexMap& map, const ParamLayout& layout) {
  std::vector<Run> runs;
  for (int axis : axes) {
    const Dim& extent = extents[static_cast<size_t>(axis)];
    if (extent == Dim(1)) continue;
    const auto step = step_along(map, layout, axis);
    if (!step || *step <= 0) return std::nullopt;
    const auto inner = extent.constant();
    if (!runs.empty() && inner && runs.back().step == *inner * *step) {
      for (auto& [outer, times] : runs.back().terms) times *= *inner;
      runs.back() = {runs.back().size * extent, *step, runs.back().terms};
      runs.back().terms.emplace_back(axis, 1);
    } else {
      runs.push_back({extent, *step, {{axis, 1}}});
    }
  }
  return runs;
}

std::optional<int64_t> stride_of(const ParamLayout& l, size_t dim) {
  for (size_t i = 0; i < l.layout.order.size(); ++i)
    if (l.layout.order[i] == static_cast<int>(dim)) return l.strides[i].constant();
  return std::nullopt;
}

/// Bytes of the element that all axes at 0 name.
std::optional<int64_t> offset_of(const IndexMap& map, const ParamLayout& layout, int64_t bytes) {
  int64_t offset = 0;
  for (size_t d = 0; d < map.dims.size(); ++d) {
    const auto at = map.dims[d].offset.constant(), stride = stride_of(layout, d);
    if (map.dims[d].dynamic || !at || (*at && !stride)) return std::nullopt;
    if (*at) offset += *at * *stride * bytes;
  }
  return offset >= 0 && offset % kAligned == 0 ? std::optional(offset) : std::nullopt;
}

/// Adds a dimension to a map of boxes; false: its stride is none.
bool add(OperandMap& to, const Run& run, int64_t box, OperandMap::Along along = OperandMap::Along::axes) {
  const int64_t step = run.step * bytes_of(to.map.dtype);
  to.map.sizes.push_back(run.size);
  if (to.map.sizes.size() > 1) to.map.strides.push_back(step);
  to.map.box.push_back(box);
  to.at.push_back({along, 0, run.terms, {}});
  return to.map.sizes.size() == 1 ? run.step == 1 : step % kAligned == 0;
}

/// Operand and result alike: `inner` axes lie together, `rows` nest, each of `single` stands at one place.
std::optional<OperandMap> boxes(int param, DType dtype, const IndexMap& map, const ParamLayout& layout,
                                const std::vector<Dim>& extents, const std::vector<int>& inner,
                                const std::vector<std::vector<int>>& single, const std::vector<int>& rows,
                                int64_t height) {
  const auto offset = offset_of(map, layout, bytes_of(dtype));
  const auto along = runs_of(inner, extents, map, layout), down = runs_of(rows, extents, map, layout);
  if (!offset || !along || !down || along->size() != 1 || down->size() != 1) return std::nullopt;
  OperandMap result;
  result.map.buffer = param;
  result.map.dtype = dtype;
  result.map.offset = *offset;
  bool good = add(result, along->front(), kBoxBytes / bytes_of(dtype)) &&
              add(result, down->front(), height, OperandMap::Along::rows);
  for (const auto& axes : single) {
    const auto runs = runs_of(axes, extents, map, layout);
    if (!runs) return std::nullopt;
    for (const Run& run : *runs) good = good && add(result, run, 1);
  }
  return good && result.map.sizes.size() <= 4 ? std::optional(result) : std::nullopt;
}

// ---- images -------------------------------------------------------------------------------------------------------

enum class Kind { channel, row, tap, batch };

Kind kind_of(const TileView& view, const std::vector<int>& rows, int axis) {
  const auto in = [&](const std::vector<int>& axes) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); };
  if (!view.k.empty() && axis == view.k.back()) return Kind::channel;
  return in(rows) ? Kind::row : in(view.k) ? Kind::tap : Kind::batch;
}

/// One of the tensor's dimensions, as a dimension of pixels or of images.
struct ImageDim {
  size_t dim = 0;
  int row = -1;  ///< the axis that walks it
  int64_t step = 1, low = 0, reach = 0;
  OperandMap::Coordinate at;
  bool plain = true;  ///< walked one by one from its beginning, without a window
};

std::optional<ImageDim> image_dim(const TileView& view, const std::vector<int>& rows, const std::vector<Dim>& extents,
                                  const IndexExpr& index, size_t d) {
  ImageDim dim;
  dim.dim = d;
  const auto offset = index.offset.constant();
  if (!offset || index.dynamic) return std::nullopt;
  dim.low = *offset;
  dim.at.offset = *offset;
  for (const IndexTerm& t : index.terms) {
    const auto coef = t.coef.constant();
    if (!coef || *coef <= 0 || !(t.div == Dim(1)) || !(t.mod == Dim(0))) return std::nullopt;
    const auto extent = extents[static_cast<size_t>(t.axis)].constant();
    switch (kind_of(view, rows, t.axis)) {
      case Kind::row:
        if (dim.row >= 0 || *coef > kMostStep) return std::nullopt;
        dim.row = t.axis;
        dim.step = *coef;
        dim.at.terms.emplace_back(t.axis, *coef);
        break;
      case Kind::tap:
        if (!extent) return std::nullopt;
        dim.reach += (*extent - 1) * *coef;
        dim.at.window.emplace_back(t.axis, *coef);
        break;
      default:
        return std::nullopt;
    }
  }
  dim.plain = dim.low == 0 && dim.step == 1 && dim.at.window.empty();
  return dim;
}

/// Whether corners and elements of the window are numbers that a copy of that rank has bits for.
bool in_range(const std::vector<ImageDim>& pixels, const TensorMap& map) {
  const int64_t corner = pixels.size() == 1 ? 1 << 15 : pixels.size() == 2 ? 1 << 7 : 1 << 4;
  for (size_t i = 0; i < pixels.size(); ++i)
    if (map.low[i] < -corner || map.low[i] >= corner || map.high[i] < -corner || map.high[i] >= corner ||
        pixels[i].reach >= 2 * corner)
      return false;
  return true;
}

/// The dimensions that rows walk, the one that moves fastest first; a last one without a window stands for images.
std::optional<OperandMap> pixels(const Region& region, const ParamLayout& layout, const TileView& view,
                                 const Read& read, const std::vector<int>& rows, int64_t height,
                                 const std::vector<Dim>& extents) {
  const Param& param = region.params[static_cast<size_t>(read.index)];
  const Shape& shape = param.type.shape;
  std::vector<ImageDim> dims;
  std::optional<size_t> channels;
  for (size_t d = 0; d < read.map.dims.size(); ++d) {
    const IndexExpr& index = read.map.dims[d];
    if (index.terms.size() == 1 && index.terms[0].axis == view.k.back() && index.terms[0].coef == Dim(1) &&
        index.offset == Dim(0) && stride_of(layout, d) == 1) {
      channels = d;
      continue;
    }
    const auto dim = image_dim(view, rows, extents, index, d);
    if (!dim) return std::nullopt;
    if (dim->row >= 0) {
      dims.push_back(*dim);
    } else if (!dim->plain || !(shape[d] == Dim(1))) {
      return std::nullopt;
    }
  }
  const auto number = [&](int axis) { return std::find(rows.begin(), rows.end(), axis) - rows.begin(); };
  std::sort(dims.begin(), dims.end(), [&](const auto& x, const auto& y) { return number(x.row) > number(y.row); });
  size_t walked = 0;
  for (int axis : rows) walked += extents[static_cast<size_t>(axis)] == Dim(1) ? 0 : 1;
  if (!channels || dims.empty() || dims.size() != walked) return std::nullopt;

  OperandMap result;
  TensorMap& map = result.map;
  map.buffer = read.index;
  map.dtype = param.type.dtype;
  map.sizes = {shape[*channels]};
  map.steps = {1};
  const int64_t bytes = bytes_of(map.dtype);
  map.box = {kBoxBytes / bytes, height};
  result.at.push_back({OperandMap::Along::axes, 0, {{view.k.back(), 1}}, {}});
  const bool images = dims.back().plain && dims.size() > 1;
  const size_t count = dims.size() - (images ? 1 : 0);
  if (count > 3) return std::nullopt;
  for (size_t i = 0; i < dims.size(); ++i) {
    const ImageDim& dim = dims[i];
    const auto stride = stride_of(layout, dim.dim);
    if (!stride || *stride <= 0 || *stride * bytes % kAligned) return std::nullopt;
    map.sizes.push_back(shape[dim.dim]);
    map.strides.push_back(*stride * bytes);
    map.steps.push_back(i < count ? dim.step : 1);
    result.at.push_back(dim.at);
    if (i == count) continue;
    const auto size = shape[dim.dim].constant(), places = extents[static_cast<size_t>(dim.row)].constant();
    if (!size || !places) return std::nullopt;
    map.low.push_back(dim.low);
    map.high.push_back(dim.low + (*places - 1) * dim.step + 1 - *size);
  }
  if (!images) {  // one image
    map.sizes.push_back(1);
    map.strides.push_back(kAligned);
    map.steps.push_back(1);
    result.at.push_back({});
  }
  dims.resize(count);
  return in_range(dims, map) ? std::optional(result) : std::nullopt;
}

}  // namespace

namespace {

/// The read that an operand is, where its elements are what tensor maps have.
const Read* read_of(const Region& region, const std::vector<ParamLayout>& layouts, const TileView& view,
                    const Expr& operand) {
  const int index = mma_read(operand);
  if (index < 0 || view.k.empty()) return nullptr;
  const Read& read = region.stages[0].reads[static_cast<size_t>(index)];
  const auto p = static_cast<size_t>(read.index);
  return is_factor(region.params[p].type.dtype) && layouts[p].layout.blocks.empty() ? &read : nullptr;
}

}  // namespace

std::optional<OperandMap> map_of_operand(const Region& region, const std::vector<ParamLayout>& layouts,
                                         const TileView& view, const Expr& operand, const std::vector<int>& axes,
                                         int64_t rows) {
  const Read* read = read_of(region, layouts, view, operand);
  if (!read) return std::nullopt;
  const ParamLayout& layout = layouts[static_cast<size_t>(read->index)];
  const DType dtype = region.params[static_cast<size_t>(read->index)].type.dtype;
  const std::vector<Dim> extents = axis_extents(region.stages[0]);
  if (operand.op() == ExprOp::read) {
    const std::vector<int> taps(view.k.begin(), view.k.end() - 1);
    auto found = boxes(read->index, dtype, read->map, layout, extents, {view.k.back()}, {taps, view.batch}, axes, rows);
    if (found) return found;
  }
  return pixels(region, layout, view, *read, axes, rows, extents);
}

std::optional<OperandMap> map_of_flat_operand(const Region& region, const std::vector<ParamLayout>& layouts,
                                              const TileView& view, const Expr& operand, const std::vector<int>& axes,
                                              int64_t rows) {
  const Read* read = read_of(region, layouts, view, operand);
  if (!read || operand.op() != ExprOp::read) return std::nullopt;
  const DType dtype = region.params[static_cast<size_t>(read->index)].type.dtype;
  auto found = boxes(read->index, dtype, read->map, layouts[static_cast<size_t>(read->index)],
                     axis_extents(region.stages[0]), view.k, {view.batch}, axes, rows);
  if (found) found->at[0].along = OperandMap::Along::depth;
  return found;
}

namespace {

/// What walks memory: an axis, or a part of one, (axis / div) % mod.
struct Walk {
  IndexTerm part;
  Dim size;
  int64_t step;
};

std::optional<std::vector<Walk>> walks_of(const IndexMap& map, const ParamLayout& layout,
                                          const std::vector<Dim>& extents) {
  std::vector<Walk> walks;
  for (size_t d = 0; d < map.dims.size(); ++d)
    for (const IndexTerm& t : map.dims[d].terms) {
      const Dim& extent = extents[static_cast<size_t>(t.axis)];
      if (extent == Dim(1)) continue;
      const auto coef = t.coef.constant(), stride = stride_of(layout, d);
      if (!coef || !stride || *coef <= 0 || *stride <= 0) return std::nullopt;
      const IndexTerm part{.coef = 1, .axis = t.axis, .div = t.div, .mod = t.mod};
      const auto same = std::find_if(walks.begin(), walks.end(), [&](const Walk& w) { return w.part == part; });
      if (same != walks.end())
        same->step += *coef * *stride;
      else
        walks.push_back({part, t.mod == Dim(0) ? ceil_div(extent, t.div) : t.mod, *coef * *stride});
    }
  return walks;
}

}  // namespace

std::optional<OperandMap> map_of_rows(const Region& region, const std::vector<ParamLayout>& layouts, size_t stage,
                                      const Expr& operand, const RowsOfHead& rows) {
  if (operand.op() != ExprOp::read) return std::nullopt;
  const Stage& s = region.stages[stage];
  const Read& read = s.reads[static_cast<size_t>(operand.index())];
  if (read.stage >= 0 || guarded_reads(s).count(operand.index())) return std::nullopt;
  const auto p = static_cast<size_t>(read.index);
  OperandMap result;
  result.map.buffer = read.index;
  result.map.dtype = region.params[p].type.dtype;
  if (!is_half(result.map.dtype) || !layouts[p].layout.blocks.empty()) return std::nullopt;
  const auto offset = offset_of(read.map, layouts[p], 2);
  const auto walks = offset ? walks_of(read.map, layouts[p], axis_extents(s)) : std::nullopt;
  if (!walks) return std::nullopt;
  result.map.offset = *offset;
  const auto whole = [&](int axis) -> const Walk* {
    const Walk* only = nullptr;
    for (const Walk& w : *walks) {
      if (w.part.axis != axis) continue;
      if (only || !(w.part.div == Dim(1)) || !(w.part.mod == Dim(0))) return nullptr;
      only = &w;
    }
    return only;
  };
  const Walk *number = whole(rows.number), *row = whole(rows.row);
  if (!number || !row) return std::nullopt;
  const auto run = [](const Walk& w) { return Run{w.size, w.step, {}}; };
  bool good = add(result, run(*number), kBoxBytes / 2) && add(result, run(*row), rows.height, OperandMap::Along::rows);
  for (const Walk& w : *walks) {
    if (&w == number || &w == row || w.size == Dim(1)) continue;
    good = good && add(result, run(w), 1);
    result.at.back().part = w.part;
  }
  return good && result.map.sizes.size() <= 4 ? std::optional(result) : std::nullopt;
}

std::optional<OperandMap> map_of_result(const Region& region, const std::vector<ParamLayout>& layouts,
                                        const TileView& view, int64_t rows) {
  const Stage& stage = region.stages[0];
  if (stage.outputs.size() != 1) return std::nullopt;
  const StageOutput& o = stage.outputs[0];
  const ParamLayout& layout = layouts[static_cast<size_t>(o.param)];
  if (byte_size(o.dtype) != 2 || !is_float(o.dtype) || o.clipped || !layout.layout.blocks.empty()) return std::nullopt;
  auto found = boxes(o.param, o.dtype, o.map, layout, axis_extents(stage), view.n, {view.batch}, view.m, rows);
  return found && found->map.sizes.size() <= 3 ? found : std::nullopt;
}

}  // namespace opfuse::cuda
