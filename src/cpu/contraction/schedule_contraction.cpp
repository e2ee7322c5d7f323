// Schedules of register-tiled contractions. What the layouts of weights and data allow comes first (operand_fit.hpp),
// then the register tile, then how blocks of weights and rows pass through the caches, and parts (cache_blocking.hpp).
// Numbers: cpu/contraction/contraction_schedule.hpp.
#include <fmt/format.h>

#include <algorithm>

#include "base/integers.hpp"
#include "cpu/contraction/cache_blocking.hpp"
#include "cpu/contraction/codes.hpp"
#include "cpu/contraction/data_copies.hpp"
#include "cpu/contraction/decoded_weights.hpp"
#include "cpu/contraction/digits.hpp"
#include "cpu/contraction/matrix.hpp"
#include "cpu/contraction/operand_fit.hpp"
#include "cpu/contraction/overlap.hpp"
#include "cpu/contraction/packed_weights.hpp"
#include "cpu/contraction/register_tile.hpp"
#include "cpu/schedule_parts.hpp"
#include "cpu/schedules.hpp"
#include "expr/real_ops.hpp"
#include "region/single_stage.hpp"

namespace opfuse {
namespace {

/// Rows or tiles that parts cut.
int64_t item_count(const Stage& stage, const ContractionView& view, int64_t width, int64_t height) {
  if (const int row = row_axis_of(view); row >= 0)
    return ceil_of(axis_extent(stage, row).constant().value_or(1), height);
  const bool known = view.pixel < 0 || axis_extent(stage, view.pixel).is_constant();
  return known ? ceil_of(pixel_count(stage, view.pixel), width) : 1;
}

/// Every part packs the blocks it uses, so rows are cut only where many remain for each.
void cut_packed(ContractionSchedule& s, const Stage& stage, const ContractionView& view, int64_t items,
                const TargetInfo& target) {
  const int64_t block = s.nv * view.types.lanes(target), images = images_of(stage, view);
  const int64_t blocks = ceil_of(axis_extent(stage, view.vec).value(), block);
  const int64_t rows = items * s.tile_w * s.tile_h;
  const auto work = static_cast<double>(work_of(stage));
  const int64_t wanted = wanted_parts(work, target);
  if (images >= wanted) {
    s.parts_batch = std::min(images, ceil_of(wanted, 2) * 2);
    return;
  }
  split_parts(s, ceil_of(wanted, images), blocks, std::clamp<int64_t>(rows / target.kernels.packed_rows, 1, items), 1,
              1, target);
}

/// Of codes in words: each part decodes the blocks it uses.
constexpr int64_t kColumnsOfDigits = 1024;  ///< of a part: writing digits takes as long as some 30 of 4 bits

void cut_decoded(ContractionSchedule& s, const Region& region, const ContractionView& view, int64_t items,
                 const TargetInfo& target) {
  const Stage& stage = region.stages[0];
  if (s.decode == static_cast<int64_t>(Decode::into_scratch)) return cut_packed(s, stage, view, items, target);
  const int64_t columns = axis_extent(stage, view.vec).value(), depth = channel_depth(stage, view);
  const auto bytes = static_cast<double>(columns * depth * view.coded->bits) / 8;
  int64_t wanted = wanted_parts(static_cast<double>(work_of(stage)), target, bytes);
  if (s.digits && s.decode == static_cast<int64_t>(Decode::in_registers))  // each part writes the digits
    wanted = std::clamp(columns / kColumnsOfDigits, std::min(wanted, target.launch.threads), wanted);
  split_parts(s, wanted, ceil_of(columns, s.nv * view.types.lanes(target)), 1, bytes, 1, target);
}

TileProblem problem_of_row(const ContractionView& view, int64_t channels, int64_t pixels) {
  TileProblem problem;
  problem.types = view.types;
  problem.channels = channels;
  problem.pixels = pixels;
  return problem;
}

/// Two pixels may share the last of the last block's vectors. Padding is stored up to the end of that vector only.
bool shares_last_vector(const Stage& stage, const ContractionView& view, const std::vector<ParamLayout>& layouts,
                        int64_t vectors, const TargetInfo& target) {
  const int64_t channels = axis_extent(stage, view.vec).value(), lanes = view.types.lanes(target);
  for (const StageOutput& o : stage.outputs)
    if (o.param >= 0)
      for (const Block& b : layouts[static_cast<size_t>(o.param)].layout.blocks)
        if (b.factor > lanes) return false;
  if (view.coded) return false;
  const bool alone = ceil_of(channels, lanes) % vectors == 1;  // loads take as long as the products of a vector
  return vectors > 1 && !alone && !view.group_out && view.sums() == 1 && shares_vectors(view.types, target) &&
         ends_in_half(channels, lanes, target);
}

constexpr size_t kAllWidths = 64;            ///< of register tiles: there are not so many registers
constexpr double kRoundingInstructions = 8;  ///< of a vector of results
constexpr int64_t kTurns = 12;               ///< registers: chains of functions that take turns
constexpr int64_t kRounding = 4;             ///< registers: factor, limits, zero point, order of codes

/// Sums of codes of few channels have no loop of their own: what rounds them is in registers beside all of them.
bool rounds_beside_sums(const Stage& stage, const ContractionView& view, int64_t step) {
  return view.types.sum == DType::i32 && channel_depth(stage, view) < 2 * step;
}

/// Sums of codes behind which functions are computed, such as GELU, in chains that take turns: of sixteen at a time
/// 20 % fewer cycles than of as many as there are registers (768 channels on Zen 5).
bool takes_turns(const Stage& stage, const ContractionView& view, const TargetInfo& target) {
  bool found = false;
  for (const StageOutput& o : stage.outputs) o.value.visit([&](const Expr& e) { found |= is_function(e.op()); });
  return found && view.types.sum == DType::i32 && has_byte_products(target);
}

/// A register tile, and whether it leaves registers to the epilogue of the one before.
struct TileOption {
  int64_t width = 1;
  bool overlapped = false;
};

/// Chains have their band in scratch.
Decode decode_in(const Region& region, const Stage& stage, const ContractionView& view, const TargetInfo& target) {
  return view.coded || is_single_stage(region) ? decode_of(stage, view, target) : Decode::none;
}

/// What the schedules of a contraction have in common.
struct Problem {
  const Region& region;
  const std::vector<ParamLayout>& layouts;
  const Stage& stage;
  const ContractionView& view;
  const TargetInfo& target;
  OperandFit fit;
  int64_t vectors = 1;  ///< of a register tile's weights
  int64_t kept = 0;     ///< registers that the products need besides
  int64_t pixels = 1;
  bool shares_last = false;  ///< two pixels may share the last vector, unless tiles overlap

  int64_t channels() const { return axis_extent(stage, view.vec).value(); }
  /// Weights in pairs are multiplied as they lie.
  Decode decode() const { return fit.paired ? Decode::none : decode_in(region, stage, view, target); }
  bool one_block() const { return channels() <= vectors * view.types.lanes(target); }
};

/// Why the stage is none of these, or its layouts are not for them: nothing.
std::optional<Problem> problem_of(const Region& region, const std::vector<ParamLayout>& layouts, int index,
                                  const ContractionView& view, const TargetInfo& target) {
  const Stage& stage = region.stages[static_cast<size_t>(index)];
  const Read& data = stage.reads[static_cast<size_t>(view.data)];
  const Read& weights = stage.reads[static_cast<size_t>(view.weights)];
  if (!axis_extent(stage, view.vec).constant() || !channel_depth(stage, view)) return std::nullopt;
  if (data.stage >= 0 || weights.stage >= 0) return std::nullopt;
  for (int tap : view.taps)
    if (!axis_extent(stage, tap).is_constant()) return std::nullopt;
  const auto fit = fit_operands(region, view, layouts, target);
  const int64_t vectors = fit ? fit->vectors * view.sums() : 0;
  int64_t kept = registers_of_products(view.types, vectors, target);
  if (!fit || !fits({vectors, 1}, target, kept)) return std::nullopt;
  if (rounds_beside_sums(stage, view, fit->step) && fits({vectors, 1}, target, kept + kRounding)) kept += kRounding;
  if (takes_turns(stage, view, target) && fits({vectors, 1}, target, kept + kTurns)) kept += kTurns;
  const bool shares = !fit->matrix && !fit->paired && shares_last_vector(stage, view, layouts, vectors, target);
  return Problem{region, layouts, stage, view, target, *fit, vectors, kept, pixel_count(stage, view.pixel), shares};
}

/// Of a row, what its results take where no products run beside them: a core looks so far ahead that it multiplies for
/// the next tile while results of this one are rounded, but not over all of a large tile of short sums. Cycles are
/// those of `widths_by_time`, for each channel.
double rounding_cycles(const Problem& p, int64_t width) {
  if (p.view.types.sum != DType::i32 || !has_byte_products(p.target)) return 0;
  const KernelCosts& costs = p.target.kernels;
  double products = static_cast<double>(channel_depth(p.stage, p.view)) / static_cast<double>(p.view.types.unit());
  for (const int tap : p.view.taps) products *= static_cast<double>(axis_extent(p.stage, tap).value());
  const double results = static_cast<double>(width * p.vectors) * (products + kRoundingInstructions);
  const double beside = std::min(1.0, costs.looks_ahead / results);
  return (1 - beside) * static_cast<double>(p.pixels * p.vectors) * costs.rounded_vector / products;
}

/// Tiles that overlap come first where they are faster than all that do not.
std::vector<Ranked<TileOption>> tiles_by_time(const Problem& p, size_t most) {
  Fastest<TileOption> fastest(most);
  if (p.fit.matrix) {
    fastest.offer(0, {matrix_width(p.pixels), false});
    return fastest.all();
  }
  if (p.fit.paired) {
    const RegisterTile tile = tile_of_pairs(p.channels(), p.target);
    fastest.offer(0, {std::min(p.pixels, tile.vectors == p.fit.vectors ? tile.width : 1), false});
    return fastest.all();
  }
  if (decode_of(p.stage, p.view, p.target) == Decode::in_registers) {
    fastest.offer(0, {std::min(p.pixels, rows_in_registers(p.target)), false});
    return fastest.all();
  }
  // lanes of several groups need registers for the channels they are put together from
  const int64_t kept = p.fit.grouped ? 4 * p.vectors : p.kept, depth = channel_depth(p.stage, p.view);
  const TileProblem map = problem_of_row(p.view, p.channels(), p.pixels);
  const auto overlapped = may_overlap(p.stage, p.view, p.target) && !packs_weights(p.region, p.view)
                              ? overlapped_tile(map, depth, p.vectors, p.target)
                              : std::nullopt;
  if (overlapped) fastest.offer(overlapped_cycles(map, depth, *overlapped, p.target), {overlapped->width, true});
  const bool half = !overlapped && p.shares_last && p.one_block();
  for (const auto& [cycles, width] : widths_by_time(p.pixels, p.vectors, p.target, kept, half, kAllWidths)) {
    const double each = overlapped ? tile_cycles(map, {p.vectors, width}, p.target) : cycles;
    fastest.offer(static_cast<double>(depth) * (each + rounding_cycles(p, width)), {width, false});
  }
  return fastest.all();
}

ContractionSchedule schedule_with(const TileOption& tile, const Problem& p) {
  ContractionSchedule s;
  const bool half = !tile.overlapped && p.shares_last;
  s.nv = p.fit.vectors;
  s.tile_w = tile.width;
  if (p.fit.grouped) s.grouped = p.fit.grouped;
  s.step = p.fit.step;
  if (p.fit.matrix) s.matrix = 1;
  if (p.fit.paired) s.paired = 1;
  if (p.view.coded) {
    s.decode = static_cast<int64_t>(decode_of(p.stage, p.view, p.target));
    if (may_multiply_digits(p.stage, p.view, p.layouts, p.target)) s.digits = 1;
    cut_decoded(s, p.region, p.view, item_count(p.stage, p.view, tile.width, 1), p.target);
    return s;
  }
  // a row that is one narrow tile: several rows share each load of weights
  int64_t height = 1;
  if (tile.width == p.pixels && !tile.overlapped && !p.fit.paired) {
    const int64_t rows = stackable_rows(p.region, p.view);
    height = p.fit.matrix ? matrix_height(p.stage, p.view, s, rows)
                          : tallest(rows, {p.vectors, tile.width, half && p.one_block()}, p.target, p.kept);
  }
  if (height > 1) s.tile_h = height;
  if (half && tile.width * height > 1) s.half = 1;
  const int64_t items = item_count(p.stage, p.view, tile.width, height);
  if (!packs_weights(p.region, p.view)) {
    cut_parts(s, p.region, p.layouts, p.view, items, p.target);
  } else {
    s.pack = 1;
    cut_packed(s, p.stage, p.view, items, p.target);
    if (p.view.factor >= 0) {
      rows_first(s);
      fetch_ahead(s, p.region, p.layouts, p.view, p.target);
    }
  }
  if (p.fit.matrix) copy_where_needed(s, p.region, p.view, p.target);
  if (p.fit.paired) s.k_block = {}, s.prefetch = {}, s.fetch_data = {};
  if (p.decode() == Decode::into_scratch) {  // block by block for all rows
    s.decode = static_cast<int64_t>(Decode::into_scratch);
    s.k_block = {}, s.prefetch = {};
  }
  if (tile.overlapped && !s.k_block) s.overlap = 1;  // sums that rest between passes are not done
  return s;
}

}  // namespace

std::optional<std::string> misfit(const ContractionSchedule& s, const Region& region,
                                  const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  const auto found = view_products(region, 0);
  const auto* view = std::get_if<ContractionView>(&found);
  if (!view) return std::get<std::string>(found);
  const auto problem = problem_of(region, layouts, 0, *view, target);
  if (!problem) return "the layouts of the operands are not for register tiles";
  const OperandFit& fit = problem->fit;
  const auto wrong = [](const char* name, int64_t is, int64_t want) {
    return fmt::format("{}={}, and the layouts want {}", name, is, want);
  };
  if (s.nv != fit.vectors) return wrong("nv", s.nv, fit.vectors);
  if (s.step != fit.step) return wrong("step", s.step, fit.step);
  if (s.matrix != int64_t{fit.matrix}) return wrong("matrix", s.matrix, fit.matrix);
  if (s.matrix && s.tile_w * s.tile_h > kMatrixPixels) return wrong("tile_w", s.tile_w, kMatrixPixels / s.tile_h);
  if (s.paired != int64_t{fit.paired}) return wrong("paired", s.paired, fit.paired);
  if (s.paired && (s.k_block || s.prefetch || s.fetch_data || s.overlap || s.tile_h > 1))
    return "k_block, prefetch, fetch_data, overlap or tile_h of codes in pairs";
  if (s.copies && !data_copies(problem->stage, *view, s)) return "copies=1 of data that tiles read where they lie";
  if (!s.copies && s.matrix && s.step == kJoinedChannels) return "copies=0, and a product takes all taps of a row";
  if (s.matrix && s.k_block) return "k_block beside matrix=1: sums in matrix registers do not rest";
  if (s.grouped != fit.grouped) return wrong("grouped", s.grouped, fit.grouped);
  if (s.pack != int64_t{packs_weights(region, *view)}) return wrong("pack", s.pack, packs_weights(region, *view));
  if (const auto decode = static_cast<int64_t>(problem->decode()); s.decode != decode)
    return wrong("decode", s.decode, decode);
  if (s.digits && !may_multiply_digits(problem->stage, *view, layouts, target)) return "digits=1 of other than a row";
  if (view->coded && s.tile_h > 1) return "tile_h of codes";
  if (s.decode && (s.k_block || s.prefetch)) return "k_block or prefetch of weights that parts decode";
  if (s.half && !problem->shares_last) return "half=1 of channels that end in no half vector";
  if (s.overlap && s.k_block) return "overlap=1 beside k_block: sums that rest between passes are not done";
  if (s.overlap && !may_overlap(problem->stage, *view, target)) return "overlap=1 of an epilogue that cannot wait";
  if (s.k_block % s.step) return fmt::format("k_block={} is not a multiple of step={}", int64_t{s.k_block}, s.step);
  return std::nullopt;
}

std::vector<Ranked<ContractionSchedule>> schedule_contraction(const Region& region,
                                                              const std::vector<ParamLayout>& layouts, int index,
                                                              const TargetInfo& target, size_t most) {
  const auto found = view_products(region, index);
  const auto* view = std::get_if<ContractionView>(&found);
  const auto problem = view ? problem_of(region, layouts, index, *view, target) : std::nullopt;
  if (!problem) return {};
  std::vector<Ranked<ContractionSchedule>> schedules;
  for (const auto& [cycles, tile] : tiles_by_time(*problem, most))
    schedules.push_back({cycles, schedule_with(tile, *problem)});
  return schedules;
}

}  // namespace opfuse
