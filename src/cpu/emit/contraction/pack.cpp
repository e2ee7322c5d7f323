// Products of two activations: a block of what is taken for weights is packed into scratch, then all rows of the part
// use it. Where vectors would have to be gathered, squares are loaded the other way and transposed in registers.
// Weights of gated data are packed too, times the gate: sum x g w = sum x (g w), and they are fewer than the data.

#include "cpu/contraction/packed_weights.hpp"
#include "cpu/emit/contraction/policies.hpp"
#include "cpu/emit/transpose.hpp"

namespace opfuse::cpu {
namespace {

class Packing {
 public:
  /// `first`: output channel of the block.
  Packing(const ContractionPlan& plan, Value* first)
      : plan_(plan), k_(plan.k), from_(plan.s.reads[static_cast<size_t>(plan.view.weights)]), first_(first) {}

  void over_taps(size_t index, const Env& env, Value* to) const {
    const IndexMap& map = plan_.map_of(plan_.view.weights);
    if (index == plan_.view.taps.size()) {
      const auto step = [&](int axis) { return lane_shape(from_, map, axis, static_cast<int>(plan_.lanes)).step; };
      if (step(plan_.view.vec) != 1 && step(plan_.view.channel) == 1) return transposed(env, to);
      return straight(env, to);
    }
    const int tap = plan_.view.taps[index];
    Value* stride = axis_step(k_, plan_.weights, map, tap);
    k_.loop(k_.i64(0), k_.i64(plan_.tap_count(tap)), 1, [&](Value* t) {
      Env at = env;
      at.axes[static_cast<size_t>(tap)] = {t, false, 1};
      over_taps(index + 1, at, k_.element(to, plan_.types().weights, k_.mul(t, stride)));
    });
  }

 private:
  const ContractionPlan& plan_;
  Kernel& k_;
  const Operand& from_;
  Value* const first_;

  /// Output channels behind the last one are zeros.
  void straight(const Env& env, Value* to) const {
    const int64_t outputs = plan_.channels();
    const auto pack = [&](bool masked) {
      k_.loop(k_.i64(0), k_.i64(plan_.depth()), 1, [&](Value* c) {
        Env at = env;
        at.axes[static_cast<size_t>(plan_.view.channel)] = {c, false, 1};
        for (int64_t v = 0; v < plan_.vectors; ++v) {
          Value* lane = k_.add(first_, k_.i64(v * plan_.lanes));
          at.axes[static_cast<size_t>(plan_.view.vec)] = {lane, true, plan_.lanes};
          at.mask = masked ? lanes_below(lane, outputs) : nullptr;
          Value* offset = k_.add(k_.mul(c, k_.i64(plan_.block)), k_.i64(v * plan_.lanes));
          Value* place = k_.element(to, plan_.types().weights, offset);
          k_.b.CreateAlignedStore(value_at(at), place, plan_.weight_align());
        }
      });
    };
    if (outputs % plan_.block == 0) return pack(false);
    Value* whole = k_.b.CreateICmpSLE(k_.add(first_, k_.i64(plan_.block)), k_.i64(outputs));
    k_.branch(
        whole, [&] { pack(false); }, [&] { pack(true); });
  }

  void transposed(const Env& env, Value* to) const {
    const int64_t depth = plan_.depth(), lanes = plan_.lanes, whole = depth / lanes * lanes;
    k_.loop(k_.i64(0), k_.i64(whole), lanes, [&](Value* c) { squares(env, to, c, lanes); });
    if (depth > whole) squares(env, to, k_.i64(whole), depth - whole);
  }

  /// `channels` of them from `c` on. Behind the last output channel the last one is repeated.
  void squares(const Env& env, Value* to, Value* c, int64_t channels) const {
    const int64_t lanes = plan_.lanes;
    Value* last = k_.i64(plan_.channels() - 1);
    for (int64_t v = 0; v < plan_.vectors; ++v) {
      Env at = env;
      at.axes[static_cast<size_t>(plan_.view.channel)] = {c, true, lanes};
      if (channels < lanes) at.mask = lanes_below(c, plan_.depth());
      std::vector<Value*> rows;
      for (int64_t l = 0; l < lanes; ++l) {
        Value* output = k_.min(k_.add(first_, k_.i64(v * lanes + l)), last);
        at.axes[static_cast<size_t>(plan_.view.vec)] = {output, false, 1};
        rows.push_back(value_at(at));
      }
      rows = transpose(k_, std::move(rows));
      for (int64_t l = 0; l < channels; ++l) {
        Value* offset = k_.add(k_.mul(k_.add(c, k_.i64(l)), k_.i64(plan_.block)), k_.i64(v * lanes));
        Value* place = k_.element(to, plan_.types().weights, offset);
        k_.b.CreateAlignedStore(rows[static_cast<size_t>(l)], place, plan_.weight_align());
      }
    }
  }

  /// Weights at `at`, lanes along outputs or along channels.
  Value* value_at(const Env& at) const {
    const auto read = [&](const Operand& operand, int index) {
      const IndexMap& map = plan_.map_of(index);
      return k_.splat(load(k_, operand, address_of(k_, operand, map, at, nullptr), at, nullptr),
                      static_cast<int>(plan_.lanes));
    };
    Value* w = read(from_, plan_.view.weights);
    if (!plan_.scaled) return w;
    return k_.b.CreateFMul(w, read(plan_.s.reads[static_cast<size_t>(plan_.view.factor)], plan_.view.factor));
  }

  /// Lanes l with first + l < end.
  Value* lanes_below(Value* first, int64_t end) const {
    const auto width = static_cast<int>(plan_.lanes);
    return k_.b.CreateICmpSLT(k_.b.CreateAdd(k_.splat(first, width), k_.iota(width)), k_.splat(k_.i64(end), width));
  }
};

}  // namespace

void pack_block(const ContractionPlan& plan, const Env& env, Value* block) {
  Kernel& k = plan.k;
  k.scratch_bytes = packed_bytes(plan.s.stage, plan.view, plan.block);
  Env at = env;
  at.width = static_cast<int>(plan.lanes);
  Packing(plan, k.mul(block, k.i64(plan.block))).over_taps(0, at, k.scratch);
}

}  // namespace opfuse::cpu
