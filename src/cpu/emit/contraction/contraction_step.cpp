// The inner loop of the register-tiled contraction: weight vectors, broadcasts, multiply-adds.
#include <algorithm>

#include "cpu/emit/contraction/contraction.hpp"
#include "cpu/emit/fence.hpp"

namespace opfuse::cpu {
namespace {

constexpr size_t kTiedAccumulators = 6;

}  // namespace

void ContractionEmitter::emit_steps(const Env& env, uint64_t pixels, const TileRun& run, int64_t lanes,
                                    int64_t unrolled) {
  if (types().unit() > 1) return emit_codes(env, pixels, run, lanes);
  const std::vector<Address> w = weights_at(env);
  emit_prefetch(w, lanes);
  if (grouped_) return emit_grouped(env, w[0], pixels, run, lanes);
  const Address d = address_of(k_, data(), s_.stage.reads[static_cast<size_t>(view_.data)].map, env, nullptr);
  if (fetch_data_) prefetch_data(env, d, run);
  unrolled = std::min(lanes, unrolled);
  const int64_t whole = lanes / unrolled * unrolled;
  if (whole == unrolled)
    emit_step(env, d, w, k_.i64(0), unrolled, pixels, run);
  else
    k_.loop(k_.i64(0), k_.i64(whole), unrolled, [&](Value* l) { emit_step(env, d, w, l, unrolled, pixels, run); });
  if (lanes > whole) emit_step(env, d, w, k_.i64(whole), lanes - whole, pixels, run);
}

std::vector<Address> ContractionEmitter::weights_at(const Env& env) {
  const IndexMap& map = s_.stage.reads[static_cast<size_t>(view_.weights)].map;
  std::vector<Address> all;
  for (int64_t sum = 0; sum < sums_; ++sum)
    all.push_back(address_of(k_, s_.reads[static_cast<size_t>(read_of_weights(sum))], map, env, nullptr));
  return all;
}

void ContractionEmitter::emit_step(const Env& env, const Address& d, const std::vector<Address>& w, Value* lane,
                                   int64_t unrolled, uint64_t pixels, const TileRun& run) {
  auto& b = k_.b;
  const auto& data_map = s_.stage.reads[static_cast<size_t>(view_.data)].map;
  const auto& weights_map = s_.stage.reads[static_cast<size_t>(view_.weights)].map;
  const bool deep = view_.channel >= 0;
  Value* data_lane = deep ? axis_step(k_, data(), data_map, view_.channel) : k_.i64(0);
  Value* weights_lane = deep ? axis_step(k_, weights(), weights_map, view_.channel) : k_.i64(0);
  Value* pixel_step = view_.pixel < 0 ? k_.i64(0) : axis_step(k_, data(), data_map, view_.pixel);
  Value* row_step = row_run_ ? axis_step(k_, data(), data_map, row_axis_) : k_.i64(0);
  const int64_t count = run.width * tile_rows_;
  const auto offset = [&](const Address& a, Value* step) {
    return k_.add(k_.add(a.scalar, k_.i64(a.constant)), k_.mul(lane, step));
  };
  Value* data_at = k_.element(data().base, types().data, offset(d, data_lane));
  std::vector<Value*> weights_at;
  for (int64_t sum = 0; sum < sums_; ++sum)
    weights_at.push_back(k_.element(s_.reads[static_cast<size_t>(read_of_weights(sum))].base, types().weights,
                                    offset(w[static_cast<size_t>(sum)], weights_lane)));
  std::vector<Value*> acc = load_accumulators(count);
  const bool prologue = view_.value.op() != ExprOp::read && !scaled_;
  Value* first = nullptr;  // pixel of a pair
  for (int64_t u = 0; u < unrolled; ++u) {
    const std::vector<Value*> w_vectors = load_weights(weights_at, weights_lane, u);
    for (int64_t p = 0; p < count; ++p) {
      if (!(pixels >> p & 1)) continue;
      Value* at = k_.add(k_.mul(pixel_step, k_.i64(p % run.width)), k_.mul(data_lane, k_.i64(u)));
      at = k_.add(at, k_.mul(row_step, k_.i64(p / run.width)));
      Value* x = b.CreateAlignedLoad(k_.memory_type(types().data), k_.element(data_at, types().data, at), data_align());
      if (prologue) {
        Env point = env;
        move_to(point, p, run);
        if (view_.channel >= 0) {
          auto& channel = point.axes[static_cast<size_t>(view_.channel)];
          channel = {k_.add(channel.base, lane), false, 1, u};
        }
        x = s_.at(point, {}, {{view_.data, x}}).emit(view_.value, types().sum);
      }
      x = k_.splat(x, static_cast<int>(lanes_));
      multiply(acc, x, w_vectors, p);
      if (half_) multiply_half(acc, x, first, w_vectors.back(), p, pixels);
    }
    end_step(acc, pixels);
  }
  store_accumulators(acc, count);
}

std::vector<Value*> ContractionEmitter::load_accumulators(int64_t count) {
  std::vector<Value*> acc;
  for (int64_t i = 0; i < count * vectors_of_weights(); ++i)
    acc.push_back(k_.b.CreateLoad(acc_[0]->getAllocatedType(), acc_[static_cast<size_t>(i)]));
  return acc;
}

void ContractionEmitter::store_accumulators(const std::vector<Value*>& acc, int64_t count) {
  for (int64_t i = 0; i < count * vectors_of_weights(); ++i)
    k_.b.CreateStore(acc[static_cast<size_t>(i)], acc_[static_cast<size_t>(i)]);
}

std::vector<Value*> ContractionEmitter::load_weights(const std::vector<Value*>& at, Value* lane_step, int64_t lane) {
  std::vector<Value*> vectors;
  for (Value* weights : at)
    for (int64_t v = 0; v < vectors_; ++v) {
      Value* offset = k_.add(k_.mul(lane_step, k_.i64(lane)), k_.i64(v * lanes_));
      Value* from = k_.element(weights, types().weights, offset);
      const bool half = half_ && v + 1 == vectors_;
      vectors.push_back(half ? half_weights(from)
                             : k_.b.CreateAlignedLoad(acc_[0]->getAllocatedType(), from, weight_align()));
    }
  return vectors;
}

void ContractionEmitter::end_step(std::vector<Value*>& acc, uint64_t pixels) {
  std::vector<Value**> last;
  for (int64_t p = 63; p >= 0 && last.size() < kTiedAccumulators; --p)
    for (int64_t v = 0; v < vectors_of_weights() && (pixels >> p & 1); ++v)
      if (Value** a = &acc[place_of(p, v)]; std::find(last.begin(), last.end(), a) == last.end()) last.push_back(a);
  hold_back(k_, last);
}

void ContractionEmitter::multiply(std::vector<Value*>& acc, Value* x, const std::vector<Value*>& w, int64_t pixel) {
  for (int64_t v = 0; v < vectors_of_weights() - half_; ++v) {
    Value*& a = acc[place_of(pixel, v)];
    a = k_.fma(x, w[static_cast<size_t>(v)], a);
  }
}

}  // namespace opfuse::cpu
