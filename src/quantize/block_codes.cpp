// The error of a clip c = f max |w| in units of its scale is e = sum (w / s - code)^2, s = c / largest code; clips are
// compared by f^2 e, which neither overflows nor vanishes. Columns are taken in strips, lane by lane.
#include "quantize/block_codes.hpp"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "base/integers.hpp"
#include "base/parallel.hpp"

namespace opfuse::quantization {
namespace {

constexpr int64_t kLanes = 16;
constexpr float kRound = 0x1.8p23f;  // x + kRound - kRound is x to the nearest integer, ties to even, for |x| < 2^22
using Lanes = std::array<float, kLanes>;

float clip_factor(int clip) { return 1 - static_cast<float>(clip) / 64; }

struct Strip {
  double signal = 0, noise = 0, expected = 0;
  int64_t clipped = 0;
};

class Coder {
 public:
  Coder(const Tensor& weights, const BlockOptions& options)
      : weights_(weights.view<float>()),
        axis_(options.depth_axis),
        depth_(weights.dim(axis_)),
        columns_(weights.dim(1 - axis_)),
        block_(options.block > 0 ? options.block : std::max<int64_t>(depth_, 1)),
        blocks_(ceil_of(depth_, block_)),
        least_(options.type == DType::i4 ? -8 : -127),
        most_(options.type == DType::i4 ? 7 : 127) {
    made_.codes = Tensor(options.type, weights.sizes());
    std::vector<int64_t> sizes = weights.sizes();
    sizes[axis_] = blocks_;
    made_.scales = Tensor(DType::f32, options.block > 0 ? sizes : std::vector<int64_t>{columns_});
    set_powers(options.powers);
    codes_ = static_cast<int8_t*>(made_.codes.mutable_data());
    scales_ = made_.scales.mutable_view<float>();
  }

  BlockCodes run(int threads) {
    std::vector<Strip> strips(static_cast<size_t>(ceil_of(columns_, kLanes)));
    parallel_for(
        static_cast<int64_t>(strips.size()),
        [&](int64_t i) {
          for (int64_t b = 0; b < blocks_; ++b) code_block(b, i * kLanes, strips[static_cast<size_t>(i)]);
        },
        threads);
    Strip all;
    for (const Strip& s : strips)
      all.signal += s.signal, all.noise += s.noise, all.expected += s.expected, all.clipped += s.clipped;
    made_.clipped = all.clipped;
    made_.noise = all.expected;
    made_.sqnr = all.noise > 0 ? 10 * std::log10(all.signal / all.noise) : std::numeric_limits<double>::infinity();
    return std::move(made_);
  }

 private:
  /// Powers by row, and the same to 1 on average: squares of floats stay in range.
  void set_powers(std::span<const double> given) {
    powers_.assign(static_cast<size_t>(depth_), 1);
    shares_.assign(static_cast<size_t>(depth_), 1);
    double sum = 0;
    for (double p : given) sum += p;
    if (!(sum > 0)) return;
    for (size_t k = 0; k < powers_.size(); ++k) {
      powers_[k] = given[k];
      shares_[k] = static_cast<float>(given[k] * static_cast<double>(depth_) / sum);
    }
  }

  size_t at(int64_t k, int64_t n, int64_t depth) const {
    return static_cast<size_t>(axis_ == 0 ? k * columns_ + n : n * depth + k);
  }

  /// Rows of the block, columns from `first`; lanes beyond the last column are 0.
  std::vector<Lanes> gather(int64_t row, int64_t rows, int64_t first, int64_t count) const {
    std::vector<Lanes> w(static_cast<size_t>(rows), Lanes{});
    for (int64_t k = 0; k < rows; ++k)
      for (int64_t n = 0; n < count; ++n)
        w[static_cast<size_t>(k)][static_cast<size_t>(n)] = weights_[at(row + k, first + n, depth_)];
    return w;
  }

  float scale_of(float largest, int clip) const {
    return std::max(largest / static_cast<float>(most_) * clip_factor(clip), FLT_MIN);
  }

  Lanes errors(const std::vector<Lanes>& w, std::span<const float> shares, const Lanes& largest, int clip) const {
    const auto low = static_cast<float>(least_), high = static_cast<float>(most_);
    Lanes inverse{}, sum{};
    for (size_t l = 0; l < kLanes; ++l) inverse[l] = largest[l] > 0 ? 1 / scale_of(largest[l], clip) : 0;
    for (size_t k = 0; k < w.size(); ++k)
      for (size_t l = 0; l < kLanes; ++l) {
        const float x = w[k][l] * inverse[l], bounded = std::min(std::max(x, low), high);
        const float d = x - (bounded + kRound - kRound);
        sum[l] += d * d * shares[k];
      }
    for (float& s : sum) s *= clip_factor(clip) * clip_factor(clip);
    return sum;
  }

  void code_block(int64_t b, int64_t first, Strip& strip) {
    const int64_t row = b * block_, rows = std::min(block_, depth_ - row), count = std::min(kLanes, columns_ - first);
    const std::vector<Lanes> w = gather(row, rows, first, count);
    Lanes largest{};
    for (const Lanes& r : w)
      for (size_t l = 0; l < kLanes; ++l) largest[l] = std::max(largest[l], std::fabs(r[l]));
    const std::span<const float> shares =
        std::span(shares_).subspan(static_cast<size_t>(row), static_cast<size_t>(rows));
    Lanes best = errors(w, shares, largest, 0);
    std::array<int, kLanes> chosen{};
    for (int clip = 1; clip < kClips; ++clip) {
      const Lanes now = errors(w, shares, largest, clip);
      for (size_t l = 0; l < kLanes; ++l)
        if (now[l] < best[l]) best[l] = now[l], chosen[l] = clip;
    }
    for (int64_t n = 0; n < count; ++n) {
      const auto l = static_cast<size_t>(n);
      const float scale = largest[l] > 0 ? scale_of(largest[l], chosen[l]) : 1;
      scales_[at(b, first + n, blocks_)] = scale;
      for (int64_t k = 0; k < rows; ++k)
        codes_[at(row + k, first + n, depth_)] = code(w[static_cast<size_t>(k)][l], scale, row + k, strip);
    }
  }

  int8_t code(float w, float scale, int64_t row, Strip& strip) const {
    const float exact = std::nearbyint(w / scale);
    const float bounded = std::clamp(exact, static_cast<float>(least_), static_cast<float>(most_));
    const double x = static_cast<double>(w), d = x - static_cast<double>(bounded) * static_cast<double>(scale);
    strip.signal += x * x, strip.noise += d * d, strip.clipped += exact != bounded;
    strip.expected += d * d * powers_[static_cast<size_t>(row)];
    return static_cast<int8_t>(bounded);
  }

  std::span<const float> weights_;
  size_t axis_;
  int64_t depth_, columns_, block_, blocks_;
  int least_, most_;
  std::vector<double> powers_;
  std::vector<float> shares_;
  BlockCodes made_;
  int8_t* codes_ = nullptr;
  std::span<float> scales_;
};

}  // namespace

BlockCodes block_codes(const Tensor& weights, const BlockOptions& options) {
  return Coder(weights, options).run(options.threads);
}

}  // namespace opfuse::quantization
