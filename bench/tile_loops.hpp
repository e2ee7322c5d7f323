// Register tiles of a convolution or a GEMM, without anything else of it: what such a loop can reach at best.
//
// The instructions are volatile assembly, so that the compiler neither drops nor merges one. Templates write them out
// one after another (recursion, not loops), so that every array of vectors here becomes registers at -O2. Each function
// carries its own target attribute: call it only where the processor has the feature.
#pragma once

#include <immintrin.h>

#include <cstdint>

#define TARGET_512 __attribute__((target("avx512f"), noinline))
#define TARGET_256 __attribute__((target("avx2,fma"), noinline))
#define INLINE_512 __attribute__((target("avx512f"), always_inline)) inline
#define INLINE_256 __attribute__((target("avx2,fma"), always_inline)) inline

namespace bench {

// A register tile of Pixels x Vectors accumulators over a 64-channel slice held in L1. Embedded: every multiply-add
// reads its broadcast from memory ({1to16}); otherwise one broadcast into a register serves all Vectors.
constexpr int kChannels = 64, kMaxPixels = 28, kMaxVectors = 4;
alignas(64) inline float activations[kMaxPixels * kChannels];
alignas(64) inline float weights[kChannels * kMaxVectors * 16];

template <int N, int I = 0>
INLINE_512 void load_512(__m512* w, const float* from) {
  if constexpr (I < N) {
    asm volatile("vmovaps %1, %0" : "=v"(w[I]) : "m"(*(const __m512*)(from + I * 16)));
    load_512<N, I + 1>(w, from);
  }
}

template <int N, int I = 0>
INLINE_512 void multiply_embedded_512(__m512* sum, const float* a, const __m512* w) {
  if constexpr (I < N) {
    asm volatile("vfmadd231ps %1%{1to16%}, %2, %0" : "+v"(sum[I]) : "m"(*a), "v"(w[I]));
    multiply_embedded_512<N, I + 1>(sum, a, w);
  }
}

template <int N, int I = 0>
INLINE_512 void multiply_shared_512(__m512* sum, __m512 x, const __m512* w) {
  if constexpr (I < N) {
    asm volatile("vfmadd231ps %1, %2, %0" : "+v"(sum[I]) : "v"(x), "v"(w[I]));
    multiply_shared_512<N, I + 1>(sum, x, w);
  }
}

template <int Pixels, int Vectors, bool Embedded, int I = 0>
INLINE_512 void tile_512_channel(__m512* sum, const float* a, const __m512* w) {
  if constexpr (I < Pixels) {
    if constexpr (Embedded) {
      multiply_embedded_512<Vectors>(sum + I * Vectors, a + I * kChannels, w);
    } else {
      __m512 x;
      asm volatile("vbroadcastss %1, %0" : "=v"(x) : "m"(a[I * kChannels]));
      multiply_shared_512<Vectors>(sum + I * Vectors, x, w);
    }
    tile_512_channel<Pixels, Vectors, Embedded, I + 1>(sum, a, w);
  }
}

template <int Pixels, int Vectors, bool Embedded>
TARGET_512 void tile_512_loop(int64_t count) {
  __m512 sum[Pixels * Vectors] = {}, w[Vectors];
  for (int64_t step = 0; step < count; ++step) {
    for (int channel = 0; channel < kChannels; ++channel) {
      load_512<Vectors>(w, weights + channel * Vectors * 16);
      tile_512_channel<Pixels, Vectors, Embedded>(sum, activations + channel, w);
    }
  }
}

template <int Pixels, int Vectors, int I = 0>
INLINE_256 void tile_256_channel(__m256* sum, const float* a, const __m256* w) {
  if constexpr (I < Pixels * Vectors) {
    __m256 x;
    asm volatile("vbroadcastss %1, %0" : "=x"(x) : "m"(a[I / Vectors * kChannels]));
    asm volatile("vfmadd231ps %1, %2, %0" : "+x"(sum[I]) : "x"(x), "x"(w[0]));
    asm volatile("vfmadd231ps %1, %2, %0" : "+x"(sum[I + 1]) : "x"(x), "x"(w[1]));
    if constexpr (Vectors == 3) asm volatile("vfmadd231ps %1, %2, %0" : "+x"(sum[I + 2]) : "x"(x), "x"(w[2]));
    tile_256_channel<Pixels, Vectors, I + Vectors>(sum, a, w);
  }
}

template <int Pixels, int Vectors>
TARGET_256 inline void tile_256_loop(int64_t count) {
  static_assert(Vectors == 2 || Vectors == 3);
  __m256 sum[Pixels * Vectors] = {}, w[Vectors] = {};
  for (int64_t step = 0; step < count; ++step) {
    for (int channel = 0; channel < kChannels; ++channel) {
      const float* v = weights + channel * Vectors * 8;
      asm volatile("vmovaps %1, %0" : "=x"(w[0]) : "m"(*(const __m256*)v));
      asm volatile("vmovaps %1, %0" : "=x"(w[1]) : "m"(*(const __m256*)(v + 8)));
      if constexpr (Vectors == 3) asm volatile("vmovaps %1, %0" : "=x"(w[2]) : "m"(*(const __m256*)(v + 16)));
      tile_256_channel<Pixels, Vectors>(sum, activations + channel, w);
    }
  }
}

}  // namespace bench

#undef TARGET_512
#undef TARGET_256
#undef INLINE_512
#undef INLINE_256
