// The inner loop of the register-tiled contraction:
//
//   for channels, `unit` at a time:
//     w[sum, v] = vectors of weights
//     for pixels p of the tile:  x = data of p in all lanes;  for all w: sums[p, w] += x * w
//
// What a product is comes from ContractionPlan::product, how lanes of several groups get their data from grouped.cpp.
#include <algorithm>

#include "cpu/emit/contraction/fetch.hpp"
#include "cpu/emit/contraction/policies.hpp"
#include "cpu/emit/contraction/products.hpp"
#include "cpu/emit/contraction/widen_data.hpp"
#include "cpu/emit/contraction/widen_weights.hpp"
#include "cpu/emit/fence.hpp"

namespace opfuse::cpu {
namespace {

/// As they lie where tiles read them.
DType type_of_weights(const ContractionPlan& plan) { return widens_weights(plan) ? DType::i16 : plan.types().weights; }

}  // namespace

std::vector<Address> weights_at(const ContractionPlan& plan, const Env& env) {
  const IndexMap& map = plan.map_of(plan.view.weights);
  std::vector<Address> all;
  for (int64_t sum = 0; sum < plan.sums; ++sum)
    all.push_back(address_of(plan.k, plan.weights_of(sum), map, env, nullptr));
  return all;
}

/// Where the first channel of a step lies.
struct TileProducts::Start {
  Address data;
  std::vector<Address> weights;
  Value* widened = nullptr;  ///< where the step's data are, where they are widened
};

void TileProducts::add_step(const Env& env, uint64_t pixels, int64_t channels, int64_t unrolled) const {
  const auto data = [&] { return address_of(k_, plan_.data(), plan_.map_of(plan_.view.data), env, nullptr); };
  // nothing is fetched for a loop that only widens: its loads do not wait for each other
  if (phase_ == Phase::widen) return widen_data(data(), channels, pixels, place_of_step(env));
  Start at;
  at.weights = weights_at(plan_, env);
  fetch_weights(plan_, tile_, at.weights, channels);
  if (plan_.schedule.matrix) return multiply_matrices(plan_, tile_, env, at.weights[0], pixels);
  if (plan_.schedule.grouped) return step_of_groups(env, at.weights[0], channels, pixels);
  if (phase_ == Phase::whole) at.data = data();
  if (phase_ == Phase::whole && plan_.schedule.fetch_data) fetch_data(plan_, tile_, env, at.data);
  if (widens(plan_, channels)) at.widened = place_of_step(env);
  if (at.widened && phase_ == Phase::whole) widen_data(at.data, channels, pixels, at.widened);
  unrolled = std::min(channels, unrolled ? unrolled : kUnrolledSteps * plan_.product.unit);
  const int64_t whole = channels / unrolled * unrolled;
  if (whole == unrolled)
    step_from(env, at, k_.i64(0), unrolled, pixels);
  else
    k_.loop(k_.i64(0), k_.i64(whole), unrolled, [&](Value* lane) { step_from(env, at, lane, unrolled, pixels); });
  if (channels > whole) step_from(env, at, k_.i64(whole), channels - whole, pixels);
}

/// `channels` channels from `lane` on, counted from the step's start.
void TileProducts::step_from(const Env& env, const Start& at, Value* lane, int64_t channels, uint64_t pixels) const {
  const DType type = plan_.types().data;
  Value* data_step = plan_.data_step(plan_.view.channel);
  Value* weights_step = plan_.weights_step();
  const PixelSteps steps(plan_, tile_);
  const auto offset = [&](const Address& a, Value* step) {
    return k_.add(k_.add(a.scalar, k_.i64(a.constant)), k_.mul(lane, step));
  };
  Value* data = at.widened ? nullptr : k_.element(plan_.data().base, type, offset(at.data, data_step));
  std::vector<Value*> weights;
  for (int64_t sum = 0; sum < plan_.sums; ++sum)
    weights.push_back(k_.element(plan_.weights_of(sum).base, type_of_weights(plan_),
                                 offset(at.weights[static_cast<size_t>(sum)], weights_step)));
  multiply(weights, weights_step, channels, pixels, [&](int64_t channel) -> OfPixel {
    return [&, channel](int64_t p) {
      if (at.widened) return widened_data_of(plan_, at.widened, lane, channel, p);
      Value* from = k_.element(data, type, steps.offset(k_, tile_, p, k_.mul(data_step, k_.i64(channel))));
      return plan_.product.spread(word_of(env, from, lane, channel, p, channels - channel));
    };
  });
}

/// The last word of a dense row whose length the unit does not divide: the row may be the last that there is. Weights
/// of the channels that are missing are 0.
Value* TileProducts::short_word(Value* from, int64_t channels) const {
  const DType type = plan_.types().data;
  const int64_t bits = 8 * plan_.types().data_bytes();
  auto& b = k_.b;
  Value* word = nullptr;
  for (int64_t i = 0; i < channels; ++i) {
    Value* one = b.CreateAlignedLoad(b.getIntNTy(static_cast<unsigned>(bits)), k_.element(from, type, k_.i64(i)),
                                     plan_.data_align());
    one = b.CreateShl(b.CreateZExt(one, plan_.product.word), static_cast<uint64_t>(i * bits));
    word = word ? b.CreateOr(word, one) : one;
  }
  return word;
}

/// Data of pixel `pixel` at channel `lane` + `plus`, or what a prologue makes of it; `left`: channels from there on.
Value* TileProducts::word_of(const Env& env, Value* from, Value* lane, int64_t plus, int64_t pixel,
                             int64_t left) const {
  const bool cut = left < plan_.product.unit && plan_.data().layout.blocks.empty();
  Value* x = cut ? short_word(from, left) : k_.b.CreateAlignedLoad(plan_.product.word, from, plan_.data_align());
  if (plan_.view.value.op() == ExprOp::read || plan_.scaled) return x;
  Env point = env;
  move_to_pixel(plan_, tile_, pixel, point);
  if (plan_.view.channel >= 0) {
    auto& channel = point.axes[static_cast<size_t>(plan_.view.channel)];
    channel = {k_.add(channel.base, lane), false, 1, plus};
  }
  return plan_.s.at(point, {}, {{plan_.view.data, x}}).emit(plan_.view.value, plan_.types().sum);
}

void TileProducts::multiply(const std::vector<Value*>& weights, Value* weights_step, int64_t channels, uint64_t pixels,
                            const OfChannel& data) const {
  const Product& product = plan_.product;
  std::vector<Value*> sums;
  for (int64_t i = 0; i < tile_.accumulators(); ++i)
    sums.push_back(k_.b.CreateLoad(product.sums, plan_.places[static_cast<size_t>(i)]));
  Factor first;  // pixel of a pair
  const uint64_t taken = plan_.fills() ? tile_.all() : pixels;
  for (int64_t channel = 0; channel < channels; channel += product.unit) {
    const OfPixel of_pixel = data(channel);
    const std::vector<Factor> w = load_weights(weights, weights_step, channel);
    for (int64_t p = 0; p < tile_.pixels(); ++p) {
      const bool inside = (pixels >> p & 1) != 0;
      if (!inside && !plan_.fills()) continue;
      const Factor x = inside ? of_pixel(p) : product.spread(product.outside);
      for (int64_t v = 0; v < tile_.form.factors() - tile_.form.half; ++v) {
        Value*& sum = sums[tile_.form.place_of(p, v)];
        sum = product.add(sum, x, w[static_cast<size_t>(v)]);
      }
      if (tile_.form.half) multiply_half(sums, x, first, w.back(), p, taken);
    }
    if (!plan_.schedule.grouped) hold_last(sums, taken);
  }
  for (int64_t i = 0; i < tile_.accumulators(); ++i)
    k_.b.CreateStore(sums[static_cast<size_t>(i)], plan_.places[static_cast<size_t>(i)]);
}

std::vector<Factor> TileProducts::load_weights(const std::vector<Value*>& from, Value* step, int64_t channel) const {
  std::vector<Factor> factors;
  for (Value* weights : from)
    for (int64_t v = 0; v < tile_.form.vectors; ++v) {
      Value* offset = k_.add(k_.mul(step, k_.i64(channel)), k_.i64(v * plan_.lanes * plan_.product.unit));
      Value* at = k_.element(weights, type_of_weights(plan_), offset);
      if (widens_weights(plan_)) {
        factors.push_back(widened_factor(plan_, at));
        continue;
      }
      const bool half = tile_.form.half && v + 1 == tile_.form.vectors;
      factors.push_back(plan_.product.unpack(
          half ? load_half(at) : k_.b.CreateAlignedLoad(plan_.product.weights, at, plan_.weight_align())));
    }
  return factors;
}

/// Loads of the next channel stay behind the last products of this one.
void TileProducts::hold_last(std::vector<Value*>& sums, uint64_t pixels) const {
  constexpr size_t kTied = 6;
  std::vector<Value**> last;
  for (int64_t p = 63; p >= 0 && last.size() < kTied; --p)
    for (int64_t v = 0; v < tile_.form.factors() && (pixels >> p & 1); ++v) {
      Value** sum = &sums[tile_.form.place_of(p, v)];
      if (std::find(last.begin(), last.end(), sum) == last.end()) last.push_back(sum);
    }
  hold_back(k_, last);
}

}  // namespace opfuse::cpu
