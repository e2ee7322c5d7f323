// Operands of attention in the order in which register tiles read them. Where vectors would have to be gathered,
// squares are loaded the other way and transposed in registers.
#include "cpu/emit/attention/attention.hpp"
#include "cpu/emit/transpose.hpp"

namespace opfuse::cpu {

void AttentionEmitter::pack_block(const Env& env, const KeyBlock& block) {
  if (codes_) {
    pack_coded_keys(env, block);
    return pack_coded_values(context_env(env), block);
  }
  Env keys = env;
  keys.width = static_cast<int>(lanes_);
  const KeyBlock depth{k_.i64(0), k_.i64(depth_)}, columns{k_.i64(0), k_.i64(columns_)};
  pack({s_, view_.key, view_.key_axis, view_.depth, nv_, depth_capacity_}, keys, block, depth, packed_keys_);
  pack({c_, view_.value, view_.column, view_.summed, nc_, key_capacity_}, context_env(env), columns, block,
       packed_values_);
}

void AttentionEmitter::pack(const Packing& p, const Env& env, const KeyBlock& across, const KeyBlock& along,
                            Value* to) {
  if (lies_along(p))
    pack_transposed(p, env, across, along, to);
  else
    pack_straight(p, env, across, along, to);
}

/// Neighbours in memory are neighbours along `along`.
bool AttentionEmitter::lies_along(const Packing& p) const {
  bool along = false, across = false;
  p.value.visit([&](const Expr& e) {
    if (e.op() != ExprOp::read) return;
    const auto i = static_cast<size_t>(e.index());
    const auto step = [&](int axis) {
      return lane_shape(p.stage.reads[i], p.stage.stage.reads[i].map, axis, static_cast<int>(lanes_)).step;
    };
    const auto down = step(p.across);
    across |= down == 1;
    along |= down != 1 && down != 0 && step(p.along) == 1;
  });
  return along && !across;
}

/// Where the vector of lanes `lane`.. of the across axis begins; the next step is a panel's width further.
Value* AttentionEmitter::panel_vector(const Packing& p, Value* lane, Value* to) {
  Value* vector = k_.div(lane, k_.i64(lanes_));
  Value* panel = k_.mul(k_.div(vector, k_.i64(p.vectors)), k_.i64(p.vectors * lanes_ * p.capacity));
  return floats(to, k_.add(panel, k_.mul(k_.rem(vector, k_.i64(p.vectors)), k_.i64(lanes_))));
}

void AttentionEmitter::pack_straight(const Packing& p, const Env& env, const KeyBlock& across, const KeyBlock& along,
                                     Value* to) {
  k_.loop(k_.i64(0), along.count, 1, [&](Value* step) {
    Env point = env;
    point.axes[static_cast<size_t>(p.along)] = {k_.add(along.first, step), false, 1};
    Value* row = floats(to, k_.mul(step, k_.i64(p.vectors * lanes_)));
    vectors(across.count, [&](Value* lane, Value* mask) {
      point.mask = mask;
      point.axes[static_cast<size_t>(p.across)] = {k_.add(across.first, lane), true, lanes_};
      Value* value = p.stage.at(point).emit(p.value, DType::f32);
      store(panel_vector(p, lane, row), k_.splat(value, static_cast<int>(lanes_)));
    });
  });
}

/// Behind the last lane the last one is repeated; steps behind the last one lie in the panel's capacity.
void AttentionEmitter::pack_transposed(const Packing& p, const Env& env, const KeyBlock& across, const KeyBlock& along,
                                       Value* to) {
  Value* last = k_.sub(across.count, k_.i64(1));
  k_.loop(k_.i64(0), across.count, lanes_, [&](Value* lane) {
    Value* column = panel_vector(p, lane, to);
    vectors(along.count, [&](Value* step, Value* mask) {
      Env point = env;
      point.mask = mask;
      point.axes[static_cast<size_t>(p.along)] = {k_.add(along.first, step), true, lanes_};
      std::vector<Value*> square;
      for (int64_t l = 0; l < lanes_; ++l) {
        Value* at = k_.min(k_.add(lane, k_.i64(l)), last);
        point.axes[static_cast<size_t>(p.across)] = {k_.add(across.first, at), false, 1};
        square.push_back(k_.splat(p.stage.at(point).emit(p.value, DType::f32), static_cast<int>(lanes_)));
      }
      square = transpose(k_, std::move(square));
      for (int64_t l = 0; l < lanes_; ++l)
        store(floats(column, k_.mul(k_.add(step, k_.i64(l)), k_.i64(p.vectors * lanes_))),
              square[static_cast<size_t>(l)]);
    });
  });
}

void AttentionEmitter::pack_queries(const Env& env, const RowTile& tile) {
  if (codes_) return pack_coded_queries(env, tile);
  vectors(k_.i64(depth_), [&](Value* d, Value* mask) {
    Env point = env;
    point.width = static_cast<int>(lanes_);
    point.mask = mask;
    point.axes[static_cast<size_t>(view_.depth)] = {d, true, lanes_};
    for (int64_t r = 0; r < rows_; ++r) {
      point.axes[static_cast<size_t>(view_.row)] = row_at(tile, r);
      Value* value = s_.at(point).emit(view_.query, DType::f32);
      store(floats(queries_, k_.add(k_.i64(r * depth_capacity_), d)), k_.splat(value, static_cast<int>(lanes_)));
    }
  });
}

}  // namespace opfuse::cpu
