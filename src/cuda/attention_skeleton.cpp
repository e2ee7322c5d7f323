// Attention as three skeletons: of 16-bit operands on tensor cores where a head has at most 128 numbers, on sm_90a by
// wgmma where operands are boxes of the copy engine; else in fp32 arithmetic. Operands are read as they lie: heads cut
// from a projection, transposed or shared by several queries.
#include <fmt/format.h>

#include <algorithm>

#include "cuda/attention_copies.hpp"
#include "cuda/attention_maps.hpp"
#include "cuda/mma_operands.hpp"
#include "cuda/schedules.hpp"
#include "cuda/skeletons.hpp"
#include "kernel/attention_view.hpp"
#include "kernel/reads.hpp"

namespace opfuse::cuda {
namespace {

constexpr int64_t kMostOnTensorCores = 128;  ///< numbers of a query, of a value: their sums lie in registers

std::optional<AttentionView> viewed(const Region& region) {
  const auto found = view_attention(region);
  const auto* view = std::get_if<AttentionView>(&found);
  return view ? std::optional(*view) : std::nullopt;
}

DType sum_type(const Region& region, size_t stage) { return region.stages[stage].reductions[0].value.dtype(); }

bool see_halves(const Region& region, const TargetInfo&) {
  if (!resembles_attention(region)) return false;
  const auto view = viewed(region);
  if (!view || view->weight) return false;
  const DType dtype = sum_type(region, 0);
  return is_half(dtype) && sum_type(region, 2) == dtype && view->query.dtype() == dtype && view->key.dtype() == dtype &&
         view->value.dtype() == dtype && view->head_size(region) <= kMostOnTensorCores &&
         view->columns(region) <= kMostOnTensorCores;
}

bool see(const Region& region, const TargetInfo&) { return resembles_attention(region); }

/// Bytes of a block's operands and weights.
int64_t shared_bytes(const AttentionSchedule& s, int64_t depth, int64_t columns) {
  return 4 *
         (depth * (s.rows + 1) + depth * (s.keys + 1) + s.keys * ((columns + 15) / 16 * 16) + s.keys * (s.rows + 1));
}

/// The largest tile that fits, and that few queries and keys fill by more than half; none where a head is too large for
/// any.
std::optional<AttentionSchedule> tile_for(const Region& region, const AttentionView& view, const TargetInfo& target) {
  const Stage& scores = region.stages[0];
  const auto count = [&](int axis) { return scores.domain[static_cast<size_t>(axis)].constant().value_or(64); };
  const int64_t longest = std::max(count(view.row), count(view.key_axis));
  for (const auto& [rows, keys] : {std::pair<int64_t, int64_t>{64, 64}, {64, 32}, {32, 32}, {16, 16}}) {
    AttentionSchedule s;
    s.rows = rows;
    s.keys = keys;
    if (rows > 16 && longest <= rows / 2) continue;
    if (shared_bytes(s, view.head_size(region), view.columns(region)) <= target.shared_kilobytes << 10) return s;
  }
  return std::nullopt;
}

std::optional<std::string> refuses(const Region& region, const TargetInfo& target) {
  const auto found = view_attention(region);
  if (const auto* why = std::get_if<std::string>(&found)) return "attention: " + *why;
  const auto& view = std::get<AttentionView>(found);
  if (view.weight) return "attention: the weights are changed behind the softmax";
  for (const StageOutput& o : region.stages[2].outputs)
    if (o.clipped) return "attention: a clipped result";
  if (!tile_for(region, view, target))
    return fmt::format("attention: heads of {} and {} numbers are more than the shared memory of a block holds",
                       view.head_size(region), view.columns(region));
  return std::nullopt;
}

/// Dense: a head's numbers lie together.
void wish(const Region& region, const TargetInfo&, LayoutWish& wish) {
  for (size_t p = 0; p < region.params.size(); ++p)
    if (const size_t rank = region.params[p].type.shape.rank(); rank > 2) wish.params[p] = Layout::dense(rank);
}

AttentionMmaSchedule fitting(const Region& region, const std::vector<ParamLayout>& layouts, const AttentionView& view) {
  AttentionMmaSchedule s;
  s.copy_q = rows_of_eights(region.stages[0], layouts, view.query, view.depth);
  s.copy_k = rows_of_eights(region.stages[0], layouts, view.key, view.depth);
  s.copy_v = rows_of_eights(region.stages[2], layouts, view.value, view.column);
  s.vector = stored_together(region.stages[2], layouts, view.column);
  return s;
}

std::vector<Candidate> halves(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo&,
                              size_t) {
  const AttentionView view = *viewed(region);
  AttentionMmaSchedule s = fitting(region, layouts, view);
  const auto queries = region.stages[0].domain[static_cast<size_t>(view.row)].constant();
  const bool narrow = view.head_size(region) <= 64 && view.columns(region) <= 64;
  s.warps = narrow && queries && *queries >= 512 ? 8 : 4;  // more queries share what is read of keys and values
  return {{0, erased("attention_mma", s)}};
}

std::optional<std::string> verify_halves(const Schedule& schedule, const Region& region,
                                         const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  if (auto why = verify_fields<AttentionMmaSchedule>(schedule)) return why;
  if (!see_halves(region, target)) return "no attention of 16 bits";
  const auto s = typed<AttentionMmaSchedule>(schedule);
  const AttentionMmaSchedule most = fitting(region, layouts, *viewed(region));
  if (s.warps != 4 && s.warps != 8) return fmt::format("warps={} is neither 4 nor 8", s.warps);
  if (s.copy_q > most.copy_q || s.copy_k > most.copy_k || s.copy_v > most.copy_v)
    return "copies of data that lie apart";
  if (s.vector != 1 && s.vector != most.vector) return fmt::format("vector={} of results that lie apart", s.vector);
  return std::nullopt;
}

bool see_boxes(const Region& region, const TargetInfo& target) {
  return (target.cuda_arch == "sm_90a" || target.emulated) && see_halves(region, target);
}

/// As many blocks as registers are given out for.
bool fits(const AttentionTmaSchedule& s, const Region& region, const AttentionView& view, const TargetInfo& target) {
  const int64_t bytes = attention_tma_bytes(s, view.head_size(region), view.columns(region));
  const int64_t each = attention_tma_resident(s, region, view);
  return each * (bytes + (each - 1) * 1024) <= target.shared_kilobytes << 10;
}

/// Queries of a block share what is copied of keys and values: 128 of them, but where that leaves multiprocessors idle,
/// or registers for one block alone.
/// Steps of 128 keys read the queries half as often; 64 where they leave less behind the last key.
std::vector<Candidate> boxes(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target,
                             size_t) {
  if (target.emulated) return {};  // of the emulated device's kernels most are those of every architecture
  const AttentionView view = *viewed(region);
  const Stage& scores = region.stages[0];
  const auto count = [&](int axis) { return scores.domain[static_cast<size_t>(axis)].constant().value_or(64); };
  const int64_t queries = count(view.row), keys = count(view.key_axis);
  if (queries <= 32 || keys <= 32) return {};
  int64_t heads = 1;
  for (int axis = 0; axis < view.row; ++axis) heads *= count(axis);
  AttentionTmaSchedule s;
  const bool reads = !reads_used(scores.outputs[0].value).empty();
  s.groups = !reads && (queries + 127) / 128 * heads >= target.multiprocessors ? 2 : 1;
  s.keys = keys >= 1024 ? 128 : 64;
  s.vector = stored_together(region.stages[2], layouts, view.column);
  if (!attention_maps(region, layouts, view, s)) return {};
  for (s.stages = 4; s.stages > 2 && !fits(s, region, view, target); --s.stages) {
  }
  if (!fits(s, region, view, target)) return {};
  return {{0, erased("attention_tma", s)}};
}

std::optional<std::string> verify_boxes(const Schedule& schedule, const Region& region,
                                        const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  if (auto why = verify_fields<AttentionTmaSchedule>(schedule)) return why;
  if (!see_boxes(region, target)) return "no attention of 16 bits on sm_90a";
  const auto s = typed<AttentionTmaSchedule>(schedule);
  const AttentionView view = *viewed(region);
  if (s.keys != 64 && s.keys != 128) return fmt::format("keys={} is neither 64 nor 128", s.keys);
  if (!attention_maps(region, layouts, view, s)) return "operands that do not lie as boxes of the copy engine";
  if (const int64_t bytes = attention_tma_bytes(s, view.head_size(region), view.columns(region));
      bytes > target.shared_kilobytes << 10)
    return fmt::format("{} stages are {} bytes, more than a block has", s.stages, bytes);
  if (s.vector != 1 && s.vector != stored_together(region.stages[2], layouts, view.column))
    return fmt::format("vector={} of results that lie apart", s.vector);
  return std::nullopt;
}

std::vector<Candidate> candidates(const Region& region, const std::vector<ParamLayout>&, const TargetInfo& target,
                                  size_t) {
  const auto view = viewed(region);
  const auto tile = view ? tile_for(region, *view, target) : std::nullopt;
  if (!tile) return {};
  return {{0, erased("attention", *tile)}};
}

std::optional<std::string> verify(const Schedule& schedule, const Region& region, const std::vector<ParamLayout>&,
                                  const TargetInfo& target) {
  if (auto why = verify_fields<AttentionSchedule>(schedule)) return why;
  const auto s = typed<AttentionSchedule>(schedule);
  if (s.rows % 16 || s.keys % 16) return fmt::format("rows={} keys={} of 16 x 16 threads", s.rows, s.keys);
  const auto view = viewed(region);
  if (!view) return "no attention";
  if (const int64_t bytes = shared_bytes(s, view->head_size(region), view->columns(region));
      bytes > target.shared_kilobytes << 10)
    return fmt::format("{} bytes of shared memory are more than a block has", bytes);
  return std::nullopt;
}

}  // namespace

Skeleton attention_tma_skeleton() {
  return {.name = "attention_tma",
          .form = kAsLowered,
          .see = see_boxes,
          .refuses = refuses,
          .any_layouts = true,
          .wish = wish,
          .candidates = boxes,
          .verify = verify_boxes};
}

Skeleton attention_mma_skeleton() {
  return {.name = "attention_mma",
          .form = kAsLowered,
          .see = see_halves,
          .refuses = refuses,
          .any_layouts = true,
          .wish = wish,
          .candidates = halves,
          .verify = verify_halves};
}

Skeleton attention_skeleton() {
  return {.name = "attention",
          .form = kAsLowered,
          .see = see,
          .refuses = refuses,
          .any_layouts = true,
          .wish = wish,
          .candidates = candidates,
          .verify = verify};
}

}  // namespace opfuse::cuda
