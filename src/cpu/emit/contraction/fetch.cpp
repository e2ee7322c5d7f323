// Hardware prefetchers follow one stream well; a tile reads many short ones (a line per pixel and channel block), and
// weights are used once per pass.
#include "cpu/emit/contraction/fetch.hpp"

#include <algorithm>

#include "cpu/emit/contraction/policies.hpp"
#include "cpu/emit/contraction/products.hpp"
#include "cpu/emit/prefetch.hpp"

namespace opfuse::cpu {
namespace {

int64_t weights_in_line(const ContractionPlan& plan) { return plan.k.target.line_bytes / plan.types().weight_bytes(); }

/// So many lines per item that all of them are fetched: the least where there are many items, twice as many where half
/// as many.
void fetch_open_share(const ContractionPlan& plan, const Tile& tile, Value* weights, Value* next, int64_t least,
                      int64_t all) {
  Kernel& k = plan.k;
  const DType type = plan.types().weights;
  const int64_t line_weights = weights_in_line(plan);
  const auto few = [&](int64_t lines) { return k.b.CreateICmpSLT(k.mul(plan.open_items, k.i64(lines)), k.i64(all)); };
  Value* share = k.i64(least);
  for (int64_t lines = 2 * least; lines <= all; lines *= 2)
    share = k.b.CreateSelect(few(lines / 2), k.i64(lines), share);
  Value* begin = k.min(k.mul(tile.item, share), k.sub(k.i64(all), share));
  Value* first = k.element(weights, type, k.add(next, k.mul(begin, k.i64(line_weights))));
  const std::function<void(int64_t, int64_t)> fetch = [&](int64_t from, int64_t to) {
    for (int64_t line = from; line < to; ++line)
      prefetch(k, k.element(first, type, k.i64(line * line_weights)), Ahead::far);
    if (2 * to <= all) k.branch(k.b.CreateICmpSGT(share, k.i64(to)), [&] { fetch(to, 2 * to); });
  };
  fetch(0, least);
}

}  // namespace

/// The first row of the next block need not wait for memory. Blocks are neighbours, so the last one fetches what runs
/// next.
void fetch_weights(const ContractionPlan& plan, const Tile& tile, const std::vector<Address>& weights,
                   int64_t channels) {
  if (!plan.prefetches()) return;
  Kernel& k = plan.k;
  const DType type = plan.types().weights;
  const int64_t line_weights = weights_in_line(plan);
  const int64_t lines = std::max<int64_t>(1, plan.schedule.prefetch * channels / plan.schedule.step);
  for (int64_t sum = 0; sum < plan.sums; ++sum) {
    Value* base = plan.weights_of(sum).base;
    Value* next = next_weights(plan, tile, weights[static_cast<size_t>(sum)]);
    if (plan.open_items) {
      const int64_t all = channels * plan.block * plan.types().weight_bytes() / k.target.line_bytes;
      fetch_open_share(plan, tile, base, next, lines, std::max(lines, all));
      continue;
    }
    Value* first = k.element(base, type, k.add(next, k.mul(tile.item, k.i64(lines * line_weights))));
    for (int64_t line = 0; line < lines; ++line)
      prefetch(k, k.element(first, type, k.i64(line * line_weights)), Ahead::far);
  }
}

/// Without these a twelfth of the weights of a 3x3 convolution on a 7x7 map would come from memory on demand.
void fetch_weights_of_taps(const ContractionPlan& plan, const Tile& tile, size_t index, const Env& env,
                           int64_t channels) {
  if (index == plan.view.taps.size()) return fetch_weights(plan, tile, weights_at(plan, env), channels);
  const int tap = plan.view.taps[index];
  plan.k.loop(plan.k.i64(0), plan.k.i64(plan.tap_count(tap)), 1, [&](Value* r) {
    Env at = env;
    at.axes[static_cast<size_t>(tap)] = {r, false, 1};
    fetch_weights_of_taps(plan, tile, index + 1, at, channels);
  });
}

/// Elements from a step's data to those of the next one; the last one fetches itself.
static Value* to_next_step(const ContractionPlan& plan, const Env& env) {
  Kernel& k = plan.k;
  const ContractionView& view = plan.view;
  const Layout& layout = plan.data().layout;
  const auto at = std::find(layout.order.begin(), layout.order.end(), view.data_channel_dim) - layout.order.begin();
  const int64_t step = plan.schedule.step;
  const int64_t units = step / layout.block_of(view.data_channel_dim);  // blocks, or elements, of the step
  Value* channel = env.axes[static_cast<size_t>(view.channel)].base;
  Value* more = k.b.CreateICmpSLT(k.add(channel, k.i64(step)), k.i64(plan.depth()));
  Value* distance = k.mul(k.dim(plan.data().strides[static_cast<size_t>(at)]), k.i64(units));
  return k.b.CreateSelect(more, distance, k.i64(0));
}

/// While this step is multiplied. The next tile lies behind this one in its row; behind the last one of a row something
/// else may lie.
void fetch_data(const ContractionPlan& plan, const Tile& tile, const Env& env, const Address& data) {
  Kernel& k = plan.k;
  const PixelSteps steps(plan, tile);
  const auto* apart = llvm::dyn_cast<llvm::ConstantInt>(steps.pixel);
  const int64_t bytes = apart ? apart->getSExtValue() * plan.types().data_bytes() : k.target.line_bytes;
  const int64_t width = tile.run->width;
  const auto in_line_before = [&](int64_t p) {  // the last of a row may lie in the next line
    const int64_t x = p % width;
    return x > 0 && x + 1 < width && x * bytes / k.target.line_bytes == (x - 1) * bytes / k.target.line_bytes;
  };
  const auto fetch = [&](Value* distance, Ahead ahead) {
    Value* first =
        k.element(plan.data().base, plan.types().data, k.add(k.add(data.scalar, k.i64(data.constant)), distance));
    for (int64_t p = 0; p < tile.pixels(); ++p)
      if (!in_line_before(p))
        prefetch(k, k.element(first, plan.types().data, steps.offset(k, tile, p, k.i64(0))), ahead);
  };
  fetch(to_next_step(plan, env), Ahead::near);
  if (plan.schedule.fetch_data == 2) fetch(k.mul(steps.pixel, k.i64(width)), Ahead::far);
}

void fetch_epilogue(const ContractionPlan& plan, const Tile& tile, const Env& env) {
  Kernel& k = plan.k;
  const StageEmitter& s = plan.s;
  Env at = env;
  at.width = static_cast<int>(plan.lanes);
  const auto fetch = [&](const Operand& operand, const IndexMap& map, Ahead ahead) {
    const Address a = address_of(k, operand, map, at, nullptr);
    if (a.step == 1) prefetch(k, k.element(operand.base, operand.dtype, k.add(a.scalar, k.i64(a.constant))), ahead);
  };
  for (int64_t v = 0; v < tile.form.vectors; ++v) {
    Value* first = k.add(k.mul(tile.block, k.i64(plan.block)), k.i64(v * plan.lanes));
    at.axes[static_cast<size_t>(plan.view.vec)] = {first, true, plan.lanes};
    for (int64_t p = 0; p < tile.pixels(); ++p) {
      move_to_pixel(plan, tile, p, at);
      for (size_t i = 0; i < s.outputs.size(); ++i) fetch(s.outputs[i], s.stage.outputs[i].map, Ahead::write);
      for (size_t r = 0; r < s.reads.size(); ++r) {
        const IndexMap& map = s.stage.reads[r].map;
        if (static_cast<int>(r) != plan.view.data && map == s.stage.outputs[0].map) fetch(s.reads[r], map, Ahead::near);
      }
    }
  }
}

}  // namespace opfuse::cpu
