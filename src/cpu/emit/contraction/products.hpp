// The products of one tile: loops over channels and taps, and in them the step, where weights are loaded, data spread
// over lanes and products added.
#pragma once

#include "cpu/emit/contraction/tile.hpp"

namespace opfuse::cpu {

/// What is done of some steps: their data are widened before the first of their products (widen_data.cpp).
enum class Phase { whole, widen, multiply };

class TileProducts {
 public:
  /// `first`: of the channels whose data are widened together.
  TileProducts(const ContractionPlan& plan, const Tile& tile, Phase phase = Phase::whole, Value* first = nullptr)
      : plan_(plan), tile_(tile), k_(plan.k), phase_(phase), first_(first) {}

  /// All of the tile's pass, from channel step `first_step` on.
  void add_all(const Env& env, int64_t first_step = 0) const;
  /// add_all where windows without taps are inside the data, and phases have weights.
  void add_inside(const Env& env) const;
  /// The products of `channels` channels of the pixels in `pixels` at the taps in `env`; `unrolled`: channels without a
  /// loop, 0: a few.
  void add_step(const Env& env, uint64_t pixels, int64_t channels, int64_t unrolled = 0) const;

 private:
  static constexpr int64_t kUnrolledSteps = 4;
  /// The data of a pixel at one channel (or unit of them), made for a channel, then for each pixel.
  using OfPixel = std::function<Factor(int64_t pixel)>;
  using OfChannel = std::function<OfPixel(int64_t channel)>;

  const ContractionPlan& plan_;
  const Tile& tile_;
  Kernel& k_;
  const Phase phase_;
  Value* const first_;

  bool fetches() const { return plan_.prefetches() && phase_ != Phase::widen; }
  Env at_axis(const Env& env, int axis, Value* value, int64_t multiple = 1) const;
  void add_steps(const Env& env, Value* from, Value* to) const;
  void add_ahead(const Env& env, Value* from, Value* to) const;
  void taps(size_t index, const Env& env, uint64_t pixels, int64_t channels) const;
  void padded_without_taps(const Env& env, uint64_t pixels, int64_t channels) const;
  bool taps_by_pixels(size_t index, const Env& env, uint64_t pixels, int64_t channels) const;
  void masked_taps(size_t index, const Env& env, const std::vector<uint64_t>& valid, uint64_t pixels,
                   int64_t channels) const;
  void clipped_taps(size_t index, const Env& env, uint64_t pixels, int64_t channels) const;
  Value* missing_taps(int tap, const Env& env) const;

  struct Start;
  void step_from(const Env& env, const Start& at, Value* lane, int64_t channels, uint64_t pixels) const;
  Value* place_of_step(const Env& env) const;
  void widen_data(const Address& data, int64_t channels, uint64_t pixels, Value* place) const;
  void step_of_groups(const Env& env, const Address& weights, int64_t channels, uint64_t pixels) const;
  void multiply(const std::vector<Value*>& weights, Value* weights_step, int64_t channels, uint64_t pixels,
                const OfChannel& data) const;
  Value* word_of(const Env& env, Value* from, Value* lane, int64_t plus, int64_t pixel, int64_t left) const;
  Value* short_word(Value* from, int64_t channels) const;
  std::vector<Factor> load_weights(const std::vector<Value*>& from, Value* step, int64_t channel) const;
  Value* load_half(Value* from) const;
  Value* mix_lanes(Value* own, Value* x, Value* other) const;
  void multiply_half(std::vector<Value*>& sums, const Factor& x, Factor& first, const Factor& w, int64_t pixel,
                     uint64_t pixels) const;
  void hold_last(std::vector<Value*>& sums, uint64_t pixels) const;
};

/// Where the weights of each sum lie at `env`.
std::vector<Address> weights_at(const ContractionPlan& plan, const Env& env);

}  // namespace opfuse::cpu
