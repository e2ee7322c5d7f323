// A depthwise window and the rows behind it as a skeleton: a block has all channels of some pixels, which stay in
// shared memory between the two.
#include <fmt/format.h>

#include "cuda/depthwise_view.hpp"
#include "cuda/schedules.hpp"
#include "cuda/skeletons.hpp"
#include "cuda/vector_body.hpp"
#include "cuda/window_rows_view.hpp"

namespace opfuse::cuda {
namespace {

constexpr int64_t kThreads = 192;    ///< of a block, about
constexpr int64_t kTile = 44 << 10;  ///< bytes of a block's pixels, about: several blocks share a multiprocessor

bool see(const Region& region, const TargetInfo&) { return resembles_window_rows(region); }

int64_t tile_bytes(int64_t pixels, int64_t channels) { return 4 * pixels * (channels + 1); }

std::optional<std::string> refuses(const Region& region, const TargetInfo& target) {
  const auto found = view_window_rows(region);
  if (const auto* why = std::get_if<std::string>(&found)) return "rows behind a window: " + *why;
  const int64_t channels = std::get<WindowRowsView>(found).channels;
  if (tile_bytes(1, channels) <= target.shared_kilobytes << 10) return std::nullopt;
  return fmt::format("rows behind a window: {} channels are more than shared memory holds", channels);
}

void wish(const Region& region, const TargetInfo&, LayoutWish& wish) { wish_channels_last(region, wish); }

/// The widest store of up to 16 bytes that all results allow.
int64_t vector_of(const Region& region, const std::vector<ParamLayout>& layouts, const WindowRowsView& view) {
  const Stage& rows = region.stages[1];
  const auto fits = [&](int64_t vector) {
    if (view.channels % vector) return false;
    for (const StageOutput& o : rows.outputs)
      if (static_cast<int64_t>(byte_size(o.dtype)) * vector > 16 ||
          !lies_together(o.map, layouts[static_cast<size_t>(o.param)], static_cast<int>(rows.domain.size()),
                         view.row_channel, vector))
        return false;
    return true;
  };
  for (int64_t vector : {8, 4, 2})
    if (fits(vector)) return vector;
  return 1;
}

int64_t columns_of(const DepthwiseView& view) {
  for (int64_t columns : {7, 8, 4})
    if (view.columns % columns == 0) return columns;
  return 4;
}

WindowRowsSchedule fitting(const Region& region, const std::vector<ParamLayout>& layouts, const WindowRowsView& view) {
  WindowRowsSchedule s;
  s.vector = vector_of(region, layouts, view);
  const auto taps = view_depthwise(region, layouts);
  if (taps && taps->channel == view.channel && view.channels / 8 <= kThreads * 4) {
    const int64_t chunks = view.channels / 8;
    s.eights = 1;
    s.columns = columns_of(*taps);
    const int64_t groups = std::max<int64_t>(
        1, std::min(kThreads / chunks, kTile / std::max<int64_t>(1, tile_bytes(s.columns, view.channels))));
    s.pixels = groups * s.columns;
    s.block = (groups * chunks + 31) / 32 * 32;
  } else {
    for (s.pixels = 32; s.pixels > 1 && tile_bytes(s.pixels, view.channels) > kTile;) s.pixels /= 2;
  }
  return s;
}

std::vector<Candidate> candidates(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo&,
                                  size_t) {
  const auto found = view_window_rows(region);
  const auto* view = std::get_if<WindowRowsView>(&found);
  if (!view) return {};
  return {{0, erased("window_rows", fitting(region, layouts, *view))}};
}

std::optional<std::string> verify(const Schedule& schedule, const Region& region,
                                  const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  if (auto why = verify_fields<WindowRowsSchedule>(schedule)) return why;
  const auto s = typed<WindowRowsSchedule>(schedule);
  const auto found = view_window_rows(region);
  const auto* view = std::get_if<WindowRowsView>(&found);
  if (!view) return std::get<std::string>(found);
  const WindowRowsSchedule most = fitting(region, layouts, *view);
  if (s.eights > most.eights) return "eight channels do not lie together";
  if (s.vector > most.vector || most.vector % s.vector)
    return fmt::format("vector={} of results that lie apart", s.vector);
  if (s.block % 32) return fmt::format("block={} is not a whole number of warps", s.block);
  if (s.eights && (s.pixels % s.columns || s.pixels / s.columns * (view->channels / 8) > s.block))
    return fmt::format("{} pixels of {} channels are more than {} threads have", s.pixels, view->channels, s.block);
  if (tile_bytes(s.pixels, view->channels) > target.shared_kilobytes << 10)
    return fmt::format("pixels={} are more than shared memory holds", s.pixels);
  return std::nullopt;
}

}  // namespace

Skeleton window_rows_skeleton() {
  return {.name = "window_rows",
          .form = kAsLowered,
          .see = see,
          .refuses = refuses,
          .any_layouts = true,
          .wish = wish,
          .candidates = candidates,
          .verify = verify};
}

}  // namespace opfuse::cuda
