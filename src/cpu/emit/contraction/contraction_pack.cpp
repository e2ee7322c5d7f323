// Products of two activations: a block of what is taken for weights is packed into scratch, then all rows of the part
// use it. Where vectors would have to be gathered, squares are loaded the other way and transposed in registers.
// Weights of gated data are packed too, times the gate: sum x g w = sum x (g w), and they are fewer than the data.
#include <algorithm>

#include "cpu/contraction/packed_weights.hpp"
#include "cpu/emit/contraction/contraction.hpp"
#include "cpu/emit/transpose.hpp"

namespace opfuse::cpu {

void ContractionEmitter::emit_packed(const Env& env, Value* ob0, Value* ob1, Value* i0, Value* i1) {
  const Operand from = weights();
  const ParamLayout packed = packed_weights(k_.spec.region, view_, block_);
  weights().base = k_.scratch;
  weights().layout = packed.layout;
  weights().strides = packed.strides;
  k_.scratch_bytes = packed_bytes(s_.stage, view_, block_);
  k_.loop(ob0, ob1, 1, [&](Value* ob) {
    pack_block(env, from, ob);
    emit(env, ob, k_.add(ob, k_.i64(1)), i0, i1);
  });
}

void ContractionEmitter::pack_block(const Env& env, const Operand& from, Value* ob) {
  Env at = env;
  at.width = static_cast<int>(lanes_);
  pack_taps(0, at, from, k_.scratch, k_.mul(ob, k_.i64(block_)));
}

/// Weights at `at`, lanes along outputs or along channels.
Value* ContractionEmitter::packed_value(const Env& at, const Operand& from) {
  const auto width = static_cast<int>(lanes_);
  const auto read = [&](const Operand& operand, int index) {
    const IndexMap& map = s_.stage.reads[static_cast<size_t>(index)].map;
    return k_.splat(load(k_, operand, address_of(k_, operand, map, at, nullptr), at, nullptr), width);
  };
  Value* w = read(from, view_.weights);
  return scaled_ ? k_.b.CreateFMul(w, read(s_.reads[static_cast<size_t>(view_.factor)], view_.factor)) : w;
}

void ContractionEmitter::pack_taps(size_t index, const Env& env, const Operand& from, Value* to, Value* first) {
  const IndexMap& map = s_.stage.reads[static_cast<size_t>(view_.weights)].map;
  if (index == view_.taps.size()) {
    const auto step = [&](int axis) { return lane_shape(from, map, axis, static_cast<int>(lanes_)).step; };
    if (step(view_.vec) != 1 && step(view_.channel) == 1) return pack_transposed(env, from, to, first);
    return pack_straight(env, from, to, first);
  }
  const int tap = view_.taps[index];
  Value* stride = axis_step(k_, weights(), map, tap);
  k_.loop(k_.i64(0), k_.i64(tap_count(tap)), 1, [&](Value* t) {
    Env at = env;
    at.axes[static_cast<size_t>(tap)] = {t, false, 1};
    pack_taps(index + 1, at, from, k_.element(to, types().weights, k_.mul(t, stride)), first);
  });
}

/// Output channels behind the last one are zeros.
void ContractionEmitter::pack_straight(const Env& env, const Operand& from, Value* to, Value* first) {
  const int64_t outputs = axis_extent(s_.stage, view_.vec).value();
  const auto pack = [&](bool masked) {
    k_.loop(k_.i64(0), k_.i64(channel_depth(s_.stage, view_)), 1, [&](Value* c) {
      Env at = env;
      at.axes[static_cast<size_t>(view_.channel)] = {c, false, 1};
      for (int64_t v = 0; v < vectors_; ++v) {
        Value* lane = k_.add(first, k_.i64(v * lanes_));
        at.axes[static_cast<size_t>(view_.vec)] = {lane, true, lanes_};
        at.mask = masked ? lanes_below(lane, outputs) : nullptr;
        Value* offset = k_.add(k_.mul(c, k_.i64(block_)), k_.i64(v * lanes_));
        k_.b.CreateAlignedStore(packed_value(at, from), k_.element(to, types().weights, offset), weight_align());
      }
    });
  };
  if (outputs % block_ == 0) return pack(false);
  Value* whole = k_.b.CreateICmpSLE(k_.add(first, k_.i64(block_)), k_.i64(outputs));
  k_.branch(
      whole, [&] { pack(false); }, [&] { pack(true); });
}

/// Behind the last output channel the last one is repeated.
void ContractionEmitter::pack_transposed(const Env& env, const Operand& from, Value* to, Value* first) {
  const int64_t depth = channel_depth(s_.stage, view_);
  Value* last = k_.i64(axis_extent(s_.stage, view_.vec).value() - 1);
  const auto square = [&](Value* c, int64_t channels) {
    for (int64_t v = 0; v < vectors_; ++v) {
      Env at = env;
      at.axes[static_cast<size_t>(view_.channel)] = {c, true, lanes_};
      if (channels < lanes_) at.mask = lanes_below(c, depth);
      std::vector<Value*> rows;
      for (int64_t l = 0; l < lanes_; ++l) {
        Value* output = k_.min(k_.add(first, k_.i64(v * lanes_ + l)), last);
        at.axes[static_cast<size_t>(view_.vec)] = {output, false, 1};
        rows.push_back(packed_value(at, from));
      }
      rows = transpose(k_, std::move(rows));
      for (int64_t l = 0; l < channels; ++l) {
        Value* offset = k_.add(k_.mul(k_.add(c, k_.i64(l)), k_.i64(block_)), k_.i64(v * lanes_));
        k_.b.CreateAlignedStore(rows[static_cast<size_t>(l)], k_.element(to, types().weights, offset), weight_align());
      }
    }
  };
  const int64_t whole = depth / lanes_ * lanes_;
  k_.loop(k_.i64(0), k_.i64(whole), lanes_, [&](Value* c) { square(c, lanes_); });
  if (depth > whole) square(k_.i64(whole), depth - whole);
}

/// Lanes l with first + l < end.
Value* ContractionEmitter::lanes_below(Value* first, int64_t end) {
  const auto width = static_cast<int>(lanes_);
  return k_.b.CreateICmpSLT(k_.b.CreateAdd(k_.splat(first, width), k_.iota(width)), k_.splat(k_.i64(end), width));
}

}  // namespace opfuse::cpu
