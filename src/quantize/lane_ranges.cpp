// Plain loops over independent lanes, which compilers make vectors of.
#include "quantize/lane_ranges.hpp"

#include <bit>

#include "quantize/by_vectors.hpp"

namespace opfuse::quantization {
namespace {

constexpr uint32_t kExponent = 0x7f800000;

template <bool sums>
[[gnu::always_inline]] inline LaneRanges ranges_body(const float* x, int64_t count) {
  LaneRanges r;
  std::array<uint32_t, kLanes> odd{};
  r.low.fill(HUGE_VALF), r.high.fill(-HUGE_VALF);
  const auto take = [&](size_t l, float v) {
    r.low[l] = v < r.low[l] ? v : r.low[l];
    r.high[l] = v > r.high[l] ? v : r.high[l];
    odd[l] |= (std::bit_cast<uint32_t>(v) & kExponent) == kExponent ? 1u : 0u;
    if (sums) r.sum[l] += static_cast<double>(v), r.squares[l] += static_cast<double>(v) * static_cast<double>(v);
  };
  int64_t i = 0;
  for (; i + int64_t{kLanes} <= count; i += kLanes)
    for (size_t l = 0; l < kLanes; ++l) take(l, x[i + static_cast<int64_t>(l)]);
  for (size_t l = 0; i < count; ++i, ++l) take(l, x[i]);
  for (uint32_t o : odd) r.finite = r.finite && o == 0;
  return r;
}

LaneRanges ranges_base(const float* x, int64_t count, bool sums) {
  return sums ? ranges_body<true>(x, count) : ranges_body<false>(x, count);
}

// A square of an f32 is exact in f64, so every machine takes the same sums, with FMA or without.
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2"))) LaneRanges ranges_avx2(const float* x, int64_t count, bool sums) {
  return sums ? ranges_body<true>(x, count) : ranges_body<false>(x, count);
}
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512"))) LaneRanges ranges_avx512(
    const float* x, int64_t count, bool sums) {
  return sums ? ranges_body<true>(x, count) : ranges_body<false>(x, count);
}
#endif

}  // namespace

NumberRange LaneRanges::all() const {
  NumberRange together{.finite = finite};
  for (size_t l = 0; l < kLanes; ++l) together.join(lane(l));
  return together;
}

LaneRanges lane_ranges(const float* x, int64_t count, bool sums) {
#if defined(__x86_64__) && defined(__GNUC__)
  static const auto best = by_vectors(ranges_base, ranges_avx2, ranges_avx512);
  return best(x, count, sums);
#else
  return ranges_base(x, count, sums);
#endif
}

}  // namespace opfuse::quantization
