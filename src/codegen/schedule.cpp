// The analytic schedule model: register tile, layouts and parts from extents alone.
//
// A contraction tile of `w` pixels and `v` vectors of output channels needs, per step of the reduction,
//   w*v multiply-adds on 2 units, w + v loads on 2 ports, v vectors of weights from L2, and at least one
//   add latency for the whole tile;
// accumulators, v weights and one broadcast must fit in the registers. The tile with the least time over
// all pixels and channels wins.
#include <algorithm>
#include <cmath>

#include "codegen/collapse.hpp"
#include "codegen/views.hpp"

namespace opfuse {
namespace {

struct Tile {
  int64_t vectors = 1, width = 1;
};

/// Cycles of one reduction step of a tile.
double step_cycles(int64_t width, int64_t vectors, bool fma) {
  const auto w = static_cast<double>(width), v = static_cast<double>(vectors);
  const double arithmetic = w * v / 2 * (fma ? 1 : 2);
  return std::max({arithmetic, (w + v) / 2, v * 1.6, 4.0}) + 0.5;
}

double row_cycles(int64_t pixels, int64_t width, int64_t vectors, bool fma) {
  double cycles = static_cast<double>(pixels / width) * step_cycles(width, vectors, fma);
  if (pixels % width) cycles += step_cycles(pixels % width, vectors, fma);
  return cycles;
}

bool fits(const Tile& t, const TargetInfo& target) {
  return t.width * t.vectors + t.vectors + 1 <= target.vector_registers;
}

/// Pixels a tile may take; a symbolic extent is taken for a long one.
int64_t pixel_count(const Stage& stage, int axis) {
  return axis < 0 ? 1 : axis_extent(stage, axis).constant().value_or(1 << 10);
}

int64_t widest(int64_t pixels, int64_t vectors, const TargetInfo& target) {
  int64_t best = 1;
  double least = INFINITY;
  for (int64_t w = 1; fits({vectors, w}, target) && w <= pixels; ++w)
    if (const double c = row_cycles(pixels, w, vectors, target.fma); c < least) least = c, best = w;
  return best;
}

Tile choose_tile(int64_t channels, int64_t pixels, const TargetInfo& target) {
  const int64_t lanes = target.lanes_f32();
  const int64_t count = (channels + lanes - 1) / lanes;
  Tile best;
  double least = INFINITY;
  for (int64_t v = 1; v <= (pixels == 1 ? 8 : 4); ++v) {
    if (!fits({v, 1}, target)) break;
    const int64_t w = widest(pixels, v, target);
    const double cycles = static_cast<double>((count + v - 1) / v) * row_cycles(pixels, w, v, target.fma);
    if (cycles < least * 0.999) least = cycles, best = {v, w};
  }
  return best;
}

/// Output channels that share weights: a group's, when there are groups.
int64_t channels_of(const Stage& stage, const ContractionView& view) {
  if (view.group_out) return view.group_out;
  return axis_extent(stage, view.vec).constant().value_or(0);
}

/// Vectors per block that keep blocks inside groups; 0: no vector fits.
int64_t vectors_in_group(int64_t wanted, const ContractionView& view, int64_t lanes) {
  if (!view.group_out) return wanted;
  for (; wanted > 0; --wanted)
    if (view.group_out % (wanted * lanes) == 0) return wanted;
  return 0;
}

bool divides_group(const Stage& stage, const ContractionView& view, int64_t block) {
  return !view.group_out || channel_depth(stage, view) % block == 0;
}

/// Pixels of one tile row once neighbouring axes are merged (a pointwise convolution has one row).
int64_t wished_pixels(const Stage& stage, const ContractionView& view) {
  int64_t pixels = pixel_count(stage, view.pixel);
  const bool pointwise =
      !view.guarded && view.taps.empty() &&
      std::all_of(view.sliding.begin(), view.sliding.end(), [](const SlidingDim& s) { return s.stride == 1; });
  if (pointwise && !view.outer.empty()) pixels *= axis_extent(stage, view.outer.back()).constant().value_or(1);
  return pixels;
}

void wish_contraction(const Region& region, const ContractionView& view, const TargetInfo& target, LayoutWish& wish) {
  const Stage& stage = region.stages[0];
  const int64_t lanes = target.lanes_f32();
  const int64_t channels = channels_of(stage, view);
  const int64_t depth = channel_depth(stage, view);
  if (!channels || !depth) return;
  Tile tile = choose_tile(channels, wished_pixels(stage, view), target);
  tile.vectors = std::max<int64_t>(1, vectors_in_group(tile.vectors, view, lanes));
  const Read& data = stage.reads[static_cast<size_t>(view.data)];
  const Read& weights = stage.reads[static_cast<size_t>(view.weights)];
  if (weights.stage >= 0) return;
  const auto& params = region.params;
  const size_t data_rank = params[static_cast<size_t>(data.index)].type.shape.rank();
  const bool image = data_rank > 2;
  const auto all =
      params[static_cast<size_t>(data.index)].type.shape[static_cast<size_t>(view.data_channel_dim)].constant();
  const bool whole = !view.group_out || view.group_out % (tile.vectors * lanes) == 0;
  const bool blocked = image && whole && depth >= lanes && divides_group(stage, view, lanes);
  if (blocked || (image && view.group_out && all.value_or(0) >= lanes))
    wish.params[static_cast<size_t>(data.index)] = Layout::channels_blocked(data_rank, view.data_channel_dim, lanes);
  if (params[static_cast<size_t>(weights.index)].role == ParamRole::constant) {
    Layout layout = Layout::dense(params[static_cast<size_t>(weights.index)].type.shape.rank());
    // the vector axis outermost, so that a block of weights is one stream
    std::erase(layout.order, view.weights_vec_dim);
    layout.order.insert(layout.order.begin(), view.weights_vec_dim);
    if (view.group_out && !blocked && view.channel >= 0) {  // the few channels of a group follow the taps
      std::erase(layout.order, view.weights_channel_dim);
      layout.order.push_back(view.weights_channel_dim);
    }
    if (blocked) layout.blocks.push_back({view.weights_channel_dim, lanes});
    layout.blocks.push_back({view.weights_vec_dim, tile.vectors * lanes});
    wish.params[static_cast<size_t>(weights.index)] = layout;
  }
}

void wish_window(const Region& region, int index, const WindowView& view, const TargetInfo& target, LayoutWish& wish) {
  const Stage& stage = region.stages[static_cast<size_t>(index)];
  const int64_t lanes = target.lanes_f32();
  for (const Read& r : stage.reads) {
    if (r.stage >= 0) continue;
    const Param& p = region.params[static_cast<size_t>(r.index)];
    const size_t rank = p.type.shape.rank();
    if (rank < 3) continue;
    for (size_t d = 0; d < r.map.dims.size(); ++d) {
      const IndexExpr& e = r.map.dims[d];
      if (e.dynamic || e.terms.size() != 1 || e.terms[0].axis != view.vec) continue;
      wish.params[static_cast<size_t>(r.index)] = Layout::channels_blocked(rank, static_cast<int>(d), lanes);
    }
  }
}

/// Outputs and epilogue operands that have the output's shape follow it: channels in blocks of a vector.
void wish_like_output(const Region& region, const Stage& stage, int vec, const TargetInfo& target, LayoutWish& wish) {
  const auto block = [&](int param, const IndexMap& map) {
    const size_t rank = region.params[static_cast<size_t>(param)].type.shape.rank();
    if (rank < 3 || wish.params[static_cast<size_t>(param)]) return;
    for (size_t d = 0; d < map.dims.size(); ++d)
      if (map.dims[d].terms.size() == 1 && map.dims[d].terms[0].axis == vec)
        wish.params[static_cast<size_t>(param)] =
            Layout::channels_blocked(rank, static_cast<int>(d), target.lanes_f32());
  };
  for (const StageOutput& o : stage.outputs)
    if (o.param >= 0) block(o.param, o.map);
  for (const StageOutput& o : stage.outputs)
    o.value.visit([&](const Expr& e) {
      if (e.op() != ExprOp::read) return;
      const Read& r = stage.reads[static_cast<size_t>(e.index())];
      if (r.stage < 0 && r.map.dims.size() >= 3) block(r.index, r.map);
    });
}

/// Innermost block of a tensor dimension and its stride, 1 and nullopt when there is none.
int64_t inner_block(const ParamLayout& l, int dim) { return l.layout.block_of(dim); }

bool stored_contiguous(const ParamLayout& l, int dim) {
  return !l.layout.blocks.empty() && l.layout.blocks.back().axis == dim && l.strides.back() == Dim(1);
}

int64_t work_of(const Stage& stage) {
  int64_t work = 1;
  for (const Dim& d : stage.domain) work *= d.constant().value_or(1);
  for (const Dim& d : stage.reduce) work *= d.constant().value_or(1);
  return work;
}

/// parts_o x parts_p pieces of `blocks` x `rows`, at least `wanted` where possible: the split with the
/// largest piece smallest, then the least memory traffic.
void split_parts(Schedule& s, int64_t wanted, int64_t blocks, int64_t rows, double weight_bytes, double data_bytes) {
  int64_t best_o = 1, best_p = 1;
  double least = INFINITY;
  for (int64_t o = 1; o <= std::min<int64_t>(blocks, 64); ++o)
    for (int64_t p = 1; p <= std::min<int64_t>(rows, 64); ++p) {
      const int64_t parts = o * p;
      if (parts > 2 * wanted) break;
      const double piece = std::ceil(static_cast<double>(blocks) / static_cast<double>(o)) *
                           std::ceil(static_cast<double>(rows) / static_cast<double>(p));
      const double even = static_cast<double>(blocks * rows) / static_cast<double>(parts);
      double cost = piece / even;  // imbalance
      if (parts < wanted) cost += 2.0 * static_cast<double>(wanted - parts) / static_cast<double>(wanted);
      if (parts % 2 && parts > 1) cost += 0.2;
      cost += 0.1 * (weight_bytes * static_cast<double>(p) + data_bytes * static_cast<double>(o)) /
              (weight_bytes + data_bytes) / 8;
      if (cost < least) least = cost, best_o = o, best_p = p;
    }
  s.set("parts_o", best_o);
  s.set("parts_p", best_p);
}

/// About 10 us of one core per part, or of its share of the memory bandwidth; at most 16 parts.
constexpr double kPartSeconds = 10e-6;  // well above the barrier's microsecond

int64_t wanted_parts(double macs, const TargetInfo& target, double bytes = 0) {
  const double compute = macs / (kPartSeconds * 6e9 * static_cast<double>(target.lanes_f32()));
  const double memory = bytes / (kPartSeconds * 20e9);
  const double parts = std::max(compute, memory);
  return std::clamp<int64_t>(static_cast<int64_t>(parts), parts > 0.3 ? 2 : 1, 16);
}

int64_t bytes_of(const Region& region, const Stage& stage, int read) {
  const Read& r = stage.reads[static_cast<size_t>(read)];
  int64_t bytes = 4;
  if (r.stage >= 0) return bytes;
  for (const Dim& d : region.params[static_cast<size_t>(r.index)].type.shape.dims) bytes *= d.constant().value_or(1);
  return bytes;
}

/// Channels of the groups in one vector of outputs lie in whole vectors or in an aligned part of one.
bool permutable(int64_t group_out, int64_t depth, int64_t lanes, int64_t data_block) {
  if (lanes % group_out != 0 || depth > 16 || data_block != lanes) return false;
  const int64_t span = lanes / group_out * depth;
  return lanes % span == 0 || (span % lanes == 0 && span / lanes <= 4);
}

bool schedule_contraction(const Region& region, const std::vector<ParamLayout>& layouts, int index,
                          const TargetInfo& target, Schedule& s) {
  const auto found = view_contraction(region, index);
  const auto* view = std::get_if<ContractionView>(&found);
  if (!view) return false;
  const Stage& stage = region.stages[static_cast<size_t>(index)];
  const int64_t lanes = target.lanes_f32();
  const Read& data = stage.reads[static_cast<size_t>(view->data)];
  const Read& weights = stage.reads[static_cast<size_t>(view->weights)];
  const auto channels = axis_extent(stage, view->vec).constant();
  const int64_t depth = channel_depth(stage, *view);
  if (!channels || !depth || data.stage >= 0 || weights.stage >= 0) return false;
  for (int tap : view->taps)
    if (!axis_extent(stage, tap).is_constant()) return false;
  const ParamLayout& w = layouts[static_cast<size_t>(weights.index)];
  const ParamLayout& d = layouts[static_cast<size_t>(data.index)];
  const int64_t block = inner_block(w, view->weights_vec_dim);
  if (!stored_contiguous(w, view->weights_vec_dim) || w.layout.blocks.back().factor != block || block % lanes != 0)
    return false;
  const int64_t data_block = inner_block(d, view->data_channel_dim),
                weight_block = view->channel < 0 ? 1 : inner_block(w, view->weights_channel_dim);
  const int64_t step = std::max(data_block, weight_block);
  const bool whole_groups = !view->group_out || view->group_out % block == 0;
  int64_t grouped = 0;  // 1: lanes of several groups, permuted; 2: blended, or channels that straddle blocks
  if (!whole_groups || (view->group_out && step > 1 && !divides_group(stage, *view, step))) {
    if ((!whole_groups && block != lanes) || weight_block > 1 || view->value.op() != ExprOp::read) return false;
    grouped = !whole_groups && permutable(view->group_out, depth, lanes, data_block) ? 1 : 2;
  } else if (step % data_block || step % weight_block ||
             (data_block > 1 && weight_block > 1 && data_block != weight_block)) {
    return false;
  }
  for (const Block& b : d.layout.blocks)
    if (b.axis != view->data_channel_dim) return false;
  for (const StageOutput& o : stage.outputs) {
    if (o.param < 0) continue;
    for (const Block& b : layouts[static_cast<size_t>(o.param)].layout.blocks) {
      const auto& terms = o.map.dims[static_cast<size_t>(b.axis)].terms;
      if (terms.size() != 1 || terms[0].axis != view->vec || b.factor % lanes != 0) return false;
    }
  }
  const int64_t vectors = block / lanes;
  if (!fits({vectors, 1}, target)) return false;
  const int64_t pixels = pixel_count(stage, view->pixel);
  // lanes of several groups need registers for the channels they are put together from
  const int64_t width = std::max<int64_t>(1, widest(pixels, vectors, target) - (grouped ? 4 : 0));
  s.set("nv", vectors);
  s.set("tile_w", width);
  if (grouped) s.set("grouped", grouped);
  s.set("step", grouped == 1   ? depth
                : grouped == 2 ? std::min<int64_t>(depth, 4)
                : step > 1     ? step
                               : std::min<int64_t>(depth, 8));
  const int row_axis = row_axis_of(*view);
  const bool known = view->pixel < 0 || axis_extent(stage, view->pixel).is_constant();
  // a row that is one narrow tile: several rows share each load of weights
  int64_t height = 1;
  if (row_axis >= 0 && region.stages.size() == 1 && known && width == pixels &&
      axis_extent(stage, row_axis).is_constant())
    while (height < axis_extent(stage, row_axis).value() && fits({vectors, width * (height + 1)}, target)) ++height;
  for (const SlidingDim& d : view->sliding)  // padding without taps is decided row by row
    if (d.axis == row_axis && view->guarded && (d.tap < 0 || !d.extent.is_constant())) height = 1;
  if (height > 1) s.set("tile_h", height);
  const int64_t rows_tall =
      row_axis >= 0 ? (axis_extent(stage, row_axis).constant().value_or(1) + height - 1) / height : 1;
  const int64_t items = row_axis >= 0 ? rows_tall : known ? (pixels + width - 1) / width : 1;
  const auto weight_bytes = static_cast<double>(bytes_of(region, stage, view->weights));
  const auto data_bytes = static_cast<double>(bytes_of(region, stage, view->data));
  split_parts(s, wanted_parts(static_cast<double>(work_of(stage)), target, weight_bytes),
              (*channels + block - 1) / block, items, weight_bytes, data_bytes);
  // channel blocks outermost over as many rows as stay in L2 beside two blocks of weights
  const auto l2 = static_cast<double>(target.l2_bytes);
  const int64_t blocks = (*channels + block - 1) / block;
  const double block_bytes = weight_bytes / static_cast<double>(blocks),
               row_bytes = data_bytes / static_cast<double>(items);
  const double room = std::max(l2 * 0.8 - 2 * block_bytes, l2 / 8);
  const int64_t rows_per_part = (items + s.get("parts_p", 1) - 1) / s.get("parts_p", 1);
  const int64_t chunk = std::clamp<int64_t>(static_cast<int64_t>(room / row_bytes), 1, rows_per_part);
  s.set("chunk", chunk);
  // the next block's weights are fetched a share per row
  const int64_t lines = s.get("step", 1) * vectors * target.vector_bytes / 64;
  if (chunk > 1 && 2 * block_bytes < l2 * 0.8) s.set("prefetch", (lines + chunk - 1) / chunk);
  int64_t batch = 1;
  for (int axis : view->outer)
    if (axis != row_axis) batch *= axis_extent(stage, axis).constant().value_or(1);
  const int64_t wanted = wanted_parts(static_cast<double>(work_of(stage)) * 4, target);
  if (s.get("parts_o", 1) * s.get("parts_p", 1) == 1 && batch > wanted) s.set("parts_batch", wanted);
  return true;
}

bool schedule_window(const Region& region, const std::vector<ParamLayout>& layouts, int index, const TargetInfo& target,
                     Schedule& s) {
  const auto found = view_window(region, index);
  const auto* view = std::get_if<WindowView>(&found);
  if (!view) return false;
  const Stage& stage = region.stages[static_cast<size_t>(index)];
  const int64_t lanes = target.lanes_f32();
  const auto lanes_along = [&](const ParamLayout& l, const IndexMap& map) {
    for (size_t d = 0; d < map.dims.size(); ++d)
      for (const IndexTerm& t : map.dims[d].terms)
        if (t.axis == view->vec)
          return !l.layout.blocks.empty() && l.layout.blocks.back().axis == static_cast<int>(d) &&
                 l.layout.blocks.back().factor % lanes == 0 && l.layout.blocks.size() == 1 &&
                 map.dims[d].terms.size() == 1;
    return false;
  };
  const Read& data = stage.reads[static_cast<size_t>(view->data)];
  if (data.stage < 0 && !lanes_along(layouts[static_cast<size_t>(data.index)], data.map)) return false;
  for (const StageOutput& o : stage.outputs)
    if (!lanes_along(layouts[static_cast<size_t>(o.param)], o.map)) return false;
  for (int tap : view->taps)
    if (!axis_extent(stage, tap).is_constant()) return false;
  if (!axis_extent(stage, view->vec).is_constant() || view->pixel < 0) return false;
  const int64_t pixels = pixel_count(stage, view->pixel);
  // accumulators beside a few operands; as few ragged pixels as possible
  int64_t best = 1;
  double least = INFINITY;
  for (int64_t w = 1; w <= std::min<int64_t>(pixels, target.vector_registers / 2); ++w) {
    const double cost =
        std::ceil(static_cast<double>(pixels) / static_cast<double>(w)) * (static_cast<double>(w) + 2.0);
    if (cost < least) least = cost, best = w;
  }
  s.set("tile_w", best);
  const int row_axis = row_axis_of(*view);
  const int64_t rows = row_axis < 0 ? 1 : axis_extent(stage, row_axis).constant().value_or(1);
  const int64_t blocks = (*axis_extent(stage, view->vec).constant() + lanes - 1) / lanes;
  split_parts(s, wanted_parts(static_cast<double>(work_of(stage)) * 2, target), blocks, rows, 1.0, 1.0);
  return true;
}

}  // namespace

LayoutWish wish_layouts(const Region& original, const TargetInfo& target) {
  LayoutWish wish;
  wish.params.resize(original.params.size());
  if (original.stages.empty()) return wish;
  Region region = original;
  const bool single = region.stages.size() == 1;
  if (single) drop_unit_axes(region);
  int vec = -1;
  if (const auto c = view_contraction(region, 0); std::holds_alternative<ContractionView>(c)) {
    wish_contraction(region, std::get<ContractionView>(c), target, wish);
    vec = std::get<ContractionView>(c).vec;
  } else if (const auto w = view_window(region, 0); std::holds_alternative<WindowView>(w)) {
    wish_window(region, 0, std::get<WindowView>(w), target, wish);
    vec = std::get<WindowView>(w).vec;
  }
  if (vec < 0) return wish;
  wish_like_output(region, region.stages[0], vec, target, wish);
  if (!single)
    if (const auto w = view_window(region, 1); std::holds_alternative<WindowView>(w)) {
      wish_window(region, 1, std::get<WindowView>(w), target, wish);
      wish_like_output(region, region.stages[1], std::get<WindowView>(w).vec, target, wish);
    }
  return wish;
}

Schedule choose_schedule(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  Schedule s;
  if (region.stages.size() == 2) {
    // the pool's rows are cut into bands, every part computes the convolution rows its band needs
    Schedule pool;
    if (!schedule_contraction(region, layouts, 0, target, s) || !schedule_window(region, layouts, 1, target, pool))
      return {};
    s.set("pool_w", pool.get("tile_w", 1));
    // few bands: rows at their borders are computed twice
    const int64_t wanted = std::min<int64_t>(8, wanted_parts(static_cast<double>(work_of(region.stages[0])), target));
    const int64_t rows = region.stages[1].domain[2].value();
    const int64_t blocks = ceil_div(region.stages[0].domain[1], s.get("nv", 1) * target.lanes_f32()).value();
    split_parts(s, wanted, blocks, rows, 1.0, 1.0);
    return s;
  }
  const Collapsed c = collapse(region, layouts);
  if (schedule_contraction(c.region, c.layouts, 0, target, s)) return s;
  if (schedule_window(c.region, c.layouts, 0, target, s)) return s;
  const Anchor anchor = region.stages.empty() ? Anchor::map : region.stages[0].anchor;
  if (anchor == Anchor::contraction || anchor == Anchor::window) s.set("generic", 1);
  return s;
}

}  // namespace opfuse
