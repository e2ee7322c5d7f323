// Maps into blocks of few channels: a vector of pixels of every channel at a time, put together in registers.
//
//   operands   c0: [p p+1 ..]   c1: [p p+1 ..]   c2: [p p+1 ..]         a plane each
//   result     [c0 c1 c2 0] of p, [c0 c1 c2 0] of p + 1, ..             one store of all
//
// With lanes along the channels a vector would have as many lanes as a block has elements. Where the number of pixels
// is not a multiple of the lanes, the last vectors begin early enough to end with the plane: some pixels are computed
// twice.
#include "cpu/emit/generic/interleaved.hpp"

#include <llvm/Analysis/VectorUtils.h>

#include <algorithm>

#include "cpu/emit/nest.hpp"
#include "kernel/reads.hpp"

namespace opfuse::cpu {
namespace {

constexpr int64_t kMostChannels = 8;  // of a block: their vectors rest in registers

/// Elements of all vectors in turn.
Value* interleave(Kernel& k, const std::vector<Value*>& vectors) {
  const int width = width_of(vectors[0]), count = static_cast<int>(vectors.size());
  Value* all = llvm::concatenateVectors(k.b, vectors);
  std::vector<int> order;
  for (int lane = 0; lane < width; ++lane)
    for (int i = 0; i < count; ++i) order.push_back(i * width + lane);
  return k.b.CreateShuffleVector(all, order);
}

class InterleavedEmitter {
 public:
  InterleavedEmitter(Kernel& k, StageEmitter& s, const Interleaved& form)
      : k_(k), s_(s), f_(form), width_(lanes_of(k.target)), pixels_(*extent(form.across).constant()) {}

  void emit(const std::vector<int>& order, const Dim& work) {
    std::vector<Level> levels;
    for (int axis : order)
      if (axis != f_.across && axis != f_.channel) levels.push_back({axis, false, extent(axis), 1, 1, false});
    levels.push_back({f_.across, false, ceil_div(extent(f_.across), width_), 1, 1, false});
    Nest(k_, std::move(levels), width_).emit_parts(s_.fresh_env(width_), work, [&](const Env& env) { pixels(env); });
  }

 private:
  Kernel& k_;
  StageEmitter& s_;
  const Interleaved& f_;
  const int width_;
  const int64_t pixels_;

  const Dim& extent(int axis) const { return s_.stage.domain[static_cast<size_t>(axis)]; }

  void pixels(const Env& env) {
    Env at = env;
    Value* first = k_.mul(env.axes[static_cast<size_t>(f_.across)].base, k_.i64(width_));
    const bool whole = pixels_ % width_ == 0;
    if (!whole) first = k_.min(first, k_.i64(pixels_ - width_));
    at.axes[static_cast<size_t>(f_.across)] = {first, true, whole ? width_ : 1};
    const Operand& output = s_.outputs[0];
    const int64_t channels = *extent(f_.channel).constant();
    std::vector<Value*> planes;
    for (int64_t c = 0; c < channels; ++c) {
      at.axes[static_cast<size_t>(f_.channel)] = {k_.i64(0), false, 0, c};
      planes.push_back(to_memory(k_, output.dtype, k_.splat(s_.value_at(at), width_)));
    }
    planes.resize(static_cast<size_t>(f_.block), k_.zero(planes[0]->getType()));
    Env one = at;
    one.width = 1;
    one.axes[static_cast<size_t>(f_.across)].lanes = false;
    one.axes[static_cast<size_t>(f_.channel)] = {k_.i64(0), false, 0};
    const Address to = address_of(k_, output, s_.stage.outputs[0].map, one, nullptr);
    Value* place = k_.element(output.base, output.dtype, k_.add(to.scalar, k_.i64(to.constant)));
    const auto bytes = static_cast<uint64_t>(byte_size(output.dtype));
    k_.b.CreateAlignedStore(interleave(k_, planes), place, llvm::Align(bytes));
  }
};

/// Every operand has neighbours along the axis side by side, or one element for all of them.
bool reads_along(const StageEmitter& s, int axis, int width) {
  bool some = false;
  for (size_t r = 0; r < s.reads.size(); ++r) {
    const auto step = lane_shape(s.reads[r], s.stage.reads[r].map, axis, width).step;
    if (step.value_or(2) > 1) return false;
    some |= step == 1;
  }
  return some;
}

bool may_be_overwritten(const StageEmitter& s) {
  return std::any_of(s.stage.reads.begin(), s.stage.reads.end(),
                     [&](const Read& read) { return may_share_memory(s.k.spec.region, read, s.stage.outputs[0]); });
}

}  // namespace

std::optional<Interleaved> find_interleaved(const StageEmitter& s, int channel, int64_t block) {
  if (channel < 0 || block < 2 || block > kMostChannels || s.outputs.size() != 1 || !s.outputs[0].base) return {};
  const Stage& stage = s.stage;
  const auto channels = stage.domain[static_cast<size_t>(channel)].constant();
  if (!stage.reductions.empty() || s.clips() || !guarded_reads(stage).empty() || channels.value_or(block + 1) > block)
    return {};
  const int width = lanes_of(s.k.target);
  for (int axis = 0; axis < static_cast<int>(stage.domain.size()); ++axis) {
    const auto pixels = stage.domain[static_cast<size_t>(axis)].constant();
    if (axis == channel || pixels.value_or(0) < width || !reads_along(s, axis, width)) continue;
    if (lane_shape(s.outputs[0], stage.outputs[0].map, axis, width).step != block) continue;
    if (*pixels % width != 0 && may_be_overwritten(s)) continue;
    return Interleaved{channel, axis, block};
  }
  return {};
}

void emit_interleaved(Kernel& k, StageEmitter& s, const Interleaved& form, const std::vector<int>& order,
                      const Dim& work) {
  InterleavedEmitter(k, s, form).emit(order, work);
}

}  // namespace opfuse::cpu
