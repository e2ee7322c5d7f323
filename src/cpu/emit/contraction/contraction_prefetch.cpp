// What the register-tiled contraction fetches before it needs it. Hardware prefetchers follow one stream well; a tile
// reads many short ones (a line per pixel and channel block), and weights are used once per pass.
#include <algorithm>
#include <functional>

#include "cpu/emit/contraction/contraction.hpp"
#include "cpu/emit/prefetch.hpp"

namespace opfuse::cpu {
/// Every item of a block fetches its share of the next weights into L2, so that the first row of
/// that block need not wait for memory. Blocks are neighbours, so the last one fetches what runs next.
void ContractionEmitter::emit_prefetch(const std::vector<Address>& w, int64_t lanes) {
  if (!prefetches()) return;
  const int64_t line_weights = k_.target.line_bytes / types().weight_bytes();
  const int64_t lines = std::max<int64_t>(1, prefetched_ * lanes / step_);
  for (int64_t sum = 0; sum < sums_; ++sum) {
    Value* base = s_.reads[static_cast<size_t>(read_of_weights(sum))].base;
    Value* next = next_weights(w[static_cast<size_t>(sum)], block_at_);
    if (open_items_) {
      emit_open_prefetch(base, next, lines,
                         std::max(lines, lanes * block_ * types().weight_bytes() / k_.target.line_bytes));
      continue;
    }
    Value* first = k_.element(base, types().weights, k_.add(next, k_.mul(item_, k_.i64(lines * line_weights))));
    for (int64_t line = 0; line < lines; ++line)
      prefetch(k_, k_.element(first, types().weights, k_.i64(line * line_weights)), Ahead::far);
  }
}

/// So many lines per item that all of them are fetched: the least where there are many items, twice as many where half
/// as many.
void ContractionEmitter::emit_open_prefetch(Value* weights, Value* next, int64_t least, int64_t all) {
  const int64_t line_weights = k_.target.line_bytes / types().weight_bytes();
  const auto few = [&](int64_t lines) { return k_.b.CreateICmpSLT(k_.mul(open_items_, k_.i64(lines)), k_.i64(all)); };
  Value* share = k_.i64(least);
  for (int64_t lines = 2 * least; lines <= all; lines *= 2)
    share = k_.b.CreateSelect(few(lines / 2), k_.i64(lines), share);
  Value* begin = k_.min(k_.mul(item_, share), k_.sub(k_.i64(all), share));
  Value* first = k_.element(weights, types().weights, k_.add(next, k_.mul(begin, k_.i64(line_weights))));
  const std::function<void(int64_t, int64_t)> fetch = [&](int64_t from, int64_t to) {
    for (int64_t line = from; line < to; ++line)
      prefetch(k_, k_.element(first, types().weights, k_.i64(line * line_weights)), Ahead::far);
    if (2 * to <= all) k_.branch(k_.b.CreateICmpSGT(share, k_.i64(to)), [&] { fetch(to, 2 * to); });
  };
  fetch(0, least);
}

/// The share of taps that this item leaves out because they lie in padding: without it a twelfth of the weights of a
/// 3x3 convolution on a 7x7 map would come from memory on demand.
void ContractionEmitter::emit_prefetch_of_taps(size_t index, const Env& env, int64_t lanes) {
  if (index == view_.taps.size()) return emit_prefetch(weights_at(env), lanes);
  const int tap = view_.taps[index];
  k_.loop(k_.i64(0), k_.i64(tap_count(tap)), 1, [&](Value* r) {
    Env at = env;
    at.axes[static_cast<size_t>(tap)] = {r, false, 1};
    emit_prefetch_of_taps(index + 1, at, lanes);
  });
}

/// The pixels' lines of the next channel block, while this one is used (the last one fetches itself).
void ContractionEmitter::prefetch_data(const Env& env, const Address& d, const TileRun& run) {
  const auto& map = s_.stage.reads[static_cast<size_t>(view_.data)].map;
  const Layout& layout = data().layout;
  const auto at = std::find(layout.order.begin(), layout.order.end(), view_.data_channel_dim) - layout.order.begin();
  Value* channel = env.axes[static_cast<size_t>(view_.channel)].base;
  const int64_t units = step_ / layout.block_of(view_.data_channel_dim);  // blocks, or elements, of the step
  Value* more = k_.b.CreateICmpSLT(k_.add(channel, k_.i64(step_)), k_.i64(channel_depth(s_.stage, view_)));
  Value* distance = k_.mul(k_.dim(data().strides[static_cast<size_t>(at)]), k_.i64(units));
  Value* ahead = k_.b.CreateSelect(more, distance, k_.i64(0));
  Value* first = k_.element(data().base, types().data, k_.add(k_.add(d.scalar, k_.i64(d.constant)), ahead));
  Value* pixel_step = axis_step(k_, data(), map, view_.pixel);
  Value* row_step = row_run_ ? axis_step(k_, data(), map, row_axis_) : k_.i64(0);
  for (int64_t p = 0; p < run.width * tile_rows_; ++p) {
    Value* offset = k_.add(k_.mul(pixel_step, k_.i64(p % run.width)), k_.mul(row_step, k_.i64(p / run.width)));
    prefetch(k_, k_.element(first, types().data, offset), Ahead::near);
  }
}

/// Lines of the results and of the operands that the epilogue reads at the same place.
void ContractionEmitter::prefetch_epilogue(const Env& env, Value* ob, const TileRun& run) {
  Env at = env;
  at.width = static_cast<int>(lanes_);
  const auto fetch = [&](const Operand& operand, const IndexMap& map, Ahead ahead) {
    const Address a = address_of(k_, operand, map, at, nullptr);
    if (a.step == 1) prefetch(k_, k_.element(operand.base, operand.dtype, k_.add(a.scalar, k_.i64(a.constant))), ahead);
  };
  for (int64_t v = 0; v < vectors_; ++v) {
    at.axes[static_cast<size_t>(view_.vec)] = {k_.add(k_.mul(ob, k_.i64(block_)), k_.i64(v * lanes_)), true, lanes_};
    for (int64_t p = 0; p < run.width * tile_rows_; ++p) {
      move_to(at, p, run);
      for (size_t i = 0; i < s_.outputs.size(); ++i) fetch(s_.outputs[i], s_.stage.outputs[i].map, Ahead::write);
      for (size_t r = 0; r < s_.reads.size(); ++r) {
        const IndexMap& map = s_.stage.reads[r].map;
        if (static_cast<int>(r) != view_.data && map == s_.stage.outputs[0].map) fetch(s_.reads[r], map, Ahead::near);
      }
    }
  }
}

}  // namespace opfuse::cpu
