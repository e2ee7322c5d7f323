//     2^e   |.|.|.|.|.|.|.|.|        edges are multiples of the width, so bins of 2^e fall into bins of 2^(e + 1)
//     2^e+1 |...|...|...|...|        as a whole: nothing is counted again, and nothing moves to a neighbour
//
// x / 2^e is exact in f32 wherever the quotient is below 2^24, which the least exponent sees to.
#include "quantize/histogram.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cmath>

#include "quantize/by_vectors.hpp"

namespace opfuse::quantization {
namespace {

constexpr int kLeastExponent = -126;  // 2^126, the factor, is finite
constexpr int kAllBits = 63;          // a shift by more leaves the sign, too, and is undefined
constexpr int64_t kVector = 16;
constexpr int kExactBits = 22;  // of a quotient: more than these the largest number has no digits for

struct Bins {
  int exponent;
  int64_t first;
};

int64_t index_of(double x, int exponent) { return static_cast<int64_t>(std::floor(std::ldexp(x, -exponent))); }

/// The narrowest ones for low to high.
Bins bins_for(double low, double high) {
  int e = kLeastExponent;
  if (const double most = std::max(std::fabs(low), std::fabs(high)); most > 0)
    e = std::max(e, std::ilogb(most) - kExactBits);
  if (high > low) e = std::max(e, std::ilogb((high - low) / kBins));
  while (index_of(high, e) - index_of(low, e) >= kBins) ++e;
  return {e, index_of(low, e)};
}

struct Binned {
  int64_t bins = 0;  ///< written: of all numbers, or of those that are not 0
  int64_t zeros = 0;
};

/// Bins of `count` numbers.
[[gnu::always_inline]] inline Binned bins_body(const float* x, int64_t count, float factor, int32_t first,
                                               uint16_t* bins) {
  int32_t zeros = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float quotient = x[i] * factor;
    int32_t at = static_cast<int32_t>(quotient);
    at -= static_cast<float>(at) > quotient ? 1 : 0;  // towards minus infinity
    bins[i] = static_cast<uint16_t>(std::min(std::max(at - first, 0), kBins - 1));
    zeros += x[i] == 0.0f ? 1 : 0;
  }
  return {count, zeros};
}

Binned bins_base(const float* x, int64_t count, float factor, int32_t first, uint16_t* bins) {
  return bins_body(x, count, factor, first, bins);
}

#if defined(__x86_64__) && defined(__GNUC__)
/// By the mask of those kept of eight: which bytes of eight bins go to the front.
using Front = std::array<std::array<uint8_t, 16>, 256>;
constexpr Front kFront = [] {
  Front front{};
  for (size_t mask = 0; mask < front.size(); ++mask)
    for (size_t lane = 0, to = 0; lane < 8; ++lane)
      if (mask >> lane & 1) {
        for (size_t byte = 0; byte < 2; ++byte) front[mask][to++] = static_cast<uint8_t>(2 * lane + byte);
      }
  return front;
}();

/// Without zeros, as below; those of a last, incomplete vector are among the bins.
__attribute__((target("avx2,popcnt"))) Binned bins_avx2(const float* x, int64_t count, float factor, int32_t first,
                                                        uint16_t* bins) {
  constexpr int64_t kEight = 8;
  const __m256 scale = _mm256_set1_ps(factor);
  const __m256i from = _mm256_set1_epi32(first), last = _mm256_set1_epi32(kBins - 1), none = _mm256_setzero_si256();
  Binned made;
  int64_t i = 0;
  for (; i + kEight <= count; i += kEight) {
    const __m256 numbers = _mm256_loadu_ps(x + i);
    const __m256i floor = _mm256_cvttps_epi32(_mm256_floor_ps(_mm256_mul_ps(numbers, scale)));
    const __m256i at = _mm256_min_epi32(_mm256_max_epi32(_mm256_sub_epi32(floor, from), none), last);
    const __m128i narrow = _mm_packus_epi32(_mm256_castsi256_si128(at), _mm256_extracti128_si256(at, 1));
    const auto kept =
        static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(numbers, _mm256_setzero_ps(), _CMP_NEQ_OQ)));
    const __m128i order = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kFront[kept].data()));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(bins + made.bins), _mm_shuffle_epi8(narrow, order));
    made.bins += std::popcount(kept);
  }
  made.zeros = i - made.bins;
  const Binned rest = bins_body(x + i, count - i, factor, first, bins + made.bins);
  return {made.bins + rest.bins, made.zeros + rest.zeros};
}

/// Without zeros: half of what a Relu stores, all in one bin, whose counters would wait for each other.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))) Binned bins_avx512(const float* x, int64_t count,
                                                                                 float factor, int32_t first,
                                                                                 uint16_t* bins) {
  const __m512 scale = _mm512_set1_ps(factor);
  const __m512i from = _mm512_set1_epi32(first), last = _mm512_set1_epi32(kBins - 1), none = _mm512_setzero_si512();
  Binned made;
  for (int64_t i = 0; i < count; i += kVector) {
    const auto inside = static_cast<__mmask16>((1u << std::min(count - i, kVector)) - 1);
    const __m512 numbers = _mm512_maskz_loadu_ps(inside, x + i);
    const __m512i floor = _mm512_maskz_cvt_roundps_epi32(inside, _mm512_mul_ps(numbers, scale),
                                                         _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    const __m512i above = _mm512_maskz_max_epi32(inside, _mm512_sub_epi32(floor, from), none);
    const __m512i at = _mm512_maskz_min_epi32(inside, above, last);
    const __mmask16 kept = _mm512_mask_cmp_ps_mask(inside, numbers, _mm512_setzero_ps(), _CMP_NEQ_OQ);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(bins + made.bins),
                        _mm512_maskz_cvtepi32_epi16(inside, _mm512_maskz_compress_epi32(kept, at)));
    made.bins += std::popcount(static_cast<uint32_t>(kept));
  }
  made.zeros = count - made.bins;
  return made;
}
#endif

/// `bins` has room for a vector more.
Binned bins_of(const float* x, int64_t count, float factor, int32_t first, uint16_t* bins) {
#if defined(__x86_64__) && defined(__GNUC__)
  static const auto best = by_vectors(bins_base, bins_avx2, bins_avx512);
  return best(x, count, factor, first, bins);
#else
  return bins_base(x, count, factor, first, bins);
#endif
}

}  // namespace

double Histogram::width() const { return std::ldexp(1.0, exponent); }
double Histogram::edge(size_t bin) const {
  return std::ldexp(static_cast<double>(first + static_cast<int64_t>(bin)), exponent);
}
size_t Histogram::bin_of_zero() const { return first <= 0 && first > -kBins ? static_cast<size_t>(-first) : kBins; }

void Histogram::cover(double low, double high) {
  const Bins bins = bins_for(low, high);
  if (counts.empty()) counts.resize(kBins);
  if (bins.exponent == exponent && bins.first == first) return;
  std::vector<int64_t> moved(kBins);
  for (size_t b = 0; b < kBins; ++b) {
    if (counts[b] == 0) continue;
    const int64_t at = ((first + static_cast<int64_t>(b)) >> std::min(bins.exponent - exponent, kAllBits)) - bins.first;
    moved[static_cast<size_t>(std::clamp<int64_t>(at, 0, kBins - 1))] += counts[b];
  }
  exponent = bins.exponent, first = bins.first, counts = std::move(moved);
}

Histogram::Counting::Counting(Histogram& histogram) : histogram_(histogram) {}

void Histogram::Counting::cover(double low, double high) {
  if (covered_ && low >= low_ && high <= high_) return;
  low_ = covered_ ? std::min(low, low_) : low, high_ = covered_ ? std::max(high, high_) : high;
  covered_ = true;
  const Bins bins = bins_for(low_, high_);
  if (bins.exponent != histogram_.exponent || bins.first != histogram_.first) flush();
  histogram_.cover(low_, high_);
}

int64_t Histogram::Counting::add(const float* numbers, int64_t amount) {
  constexpr int64_t kBlock = 1024;
  const float factor = std::ldexp(1.0f, -histogram_.exponent);
  const auto from = static_cast<int32_t>(histogram_.first);
  const auto zero = static_cast<size_t>(std::clamp<int64_t>(-histogram_.first, 0, kBins - 1));
  std::array<uint16_t, kBlock + kVector> bins;
  int64_t zeros = 0;
  for (int64_t at = 0; at < amount; at += kBlock) {
    const int64_t n = std::min(kBlock, amount - at);
    const Binned made = bins_of(numbers + at, n, factor, from, bins.data());
    count(bins.data(), static_cast<size_t>(made.bins));
    histogram_.counts[zero] += n - made.bins;
    zeros += made.zeros;
  }
  return zeros;
}

void Histogram::Counting::count(const uint16_t* bins, size_t count) {
  const size_t most = count / kTurns + count % kTurns;
  if (held_ + most > UINT16_MAX) flush();
  held_ += most;
  size_t i = 0;
  for (; i + kTurns <= count; i += kTurns)
    for (size_t turn = 0; turn < kTurns; ++turn) ++counters_[turn][bins[i + turn]];
  for (; i < count; ++i) ++counters_[0][bins[i]];
}

void Histogram::Counting::flush() {
  if (held_ == 0) return;
  for (size_t b = 0; b < kBins; ++b)
    for (auto& counter : counters_) histogram_.counts[b] += counter[b];
  for (auto& counter : counters_) counter.fill(0);
  held_ = 0;
}

}  // namespace opfuse::quantization
