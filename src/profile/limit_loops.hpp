// The loops that reach the machine's limits, one function per register width. The instructions are volatile assembly,
// so that the compiler neither drops nor merges one; each function carries its own target attribute: call it only where
// the processor has the feature.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace opfuse::limit_loops {

/// Independent multiply-adds per step: more than latency (4-5) times units (2) of every known core.
inline constexpr int kChains = 12;

#define OPFUSE_CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

/// A loop over 512-bit registers whose step is one OPFUSE_STEP per chain.
#define OPFUSE_LOOP_512(NAME, FEATURES)                                         \
  __attribute__((target(FEATURES), noinline)) inline void NAME(int64_t steps) { \
    const __m512 x = _mm512_setzero_ps();                                       \
    __m512 sum[kChains] = {};                                                   \
    for (int64_t i = 0; i < steps; ++i) {                                       \
      OPFUSE_CHAINS(OPFUSE_STEP)                                                \
    }                                                                           \
  }
#define OPFUSE_STEP(k) asm volatile("vfmadd231ps %1, %1, %0" : "+v"(sum[k]) : "v"(x));
OPFUSE_LOOP_512(fma_512, "avx512f")
#undef OPFUSE_STEP
#define OPFUSE_STEP(k) asm volatile("vdpbf16ps %1, %1, %0" : "+v"(sum[k]) : "v"(x));
OPFUSE_LOOP_512(bf16_512, "avx512f,avx512bf16")
#undef OPFUSE_STEP
#define OPFUSE_STEP(k) asm volatile("vpdpbusd %1, %1, %0" : "+v"(sum[k]) : "v"(x));
OPFUSE_LOOP_512(int8_512, "avx512f,avx512vnni")
#undef OPFUSE_STEP
// Sums of codes without VNNI: pairs of products of words, then an addition.
#define OPFUSE_STEP(k)                                             \
  {                                                                \
    __m512 pairs;                                                  \
    asm volatile("vpmaddwd %1, %1, %0" : "=v"(pairs) : "v"(x));    \
    asm volatile("vpaddd %1, %0, %0" : "+v"(sum[k]) : "v"(pairs)); \
  }
OPFUSE_LOOP_512(words_512, "avx512f,avx512bw")
#undef OPFUSE_STEP
#undef OPFUSE_LOOP_512

/// The same over 256-bit registers.
#define OPFUSE_LOOP_256(NAME, FEATURES)                                         \
  __attribute__((target(FEATURES), noinline)) inline void NAME(int64_t steps) { \
    const __m256 x = _mm256_setzero_ps();                                       \
    __m256 sum[kChains] = {};                                                   \
    for (int64_t i = 0; i < steps; ++i) {                                       \
      OPFUSE_CHAINS(OPFUSE_STEP)                                                \
    }                                                                           \
  }
#define OPFUSE_STEP(k) asm volatile("vfmadd231ps %1, %1, %0" : "+x"(sum[k]) : "x"(x));
OPFUSE_LOOP_256(fma_256, "avx2,fma")
#undef OPFUSE_STEP
#define OPFUSE_STEP(k) asm volatile("%{vex%} vpdpbusd %1, %1, %0" : "+x"(sum[k]) : "x"(x));
OPFUSE_LOOP_256(int8_256, "avx2")
#undef OPFUSE_STEP
// Codes in pairs that 16 bits hold, these in pairs, then an addition.
#define OPFUSE_STEP(k)                                             \
  {                                                                \
    __m256 pairs;                                                  \
    asm volatile("vpmaddubsw %1, %1, %0" : "=x"(pairs) : "x"(x));  \
    asm volatile("vpmaddwd %1, %0, %0" : "+x"(pairs) : "x"(x));    \
    asm volatile("vpaddd %1, %0, %0" : "+x"(sum[k]) : "x"(pairs)); \
  }
OPFUSE_LOOP_256(pairs_256, "avx2")
#undef OPFUSE_STEP
#undef OPFUSE_LOOP_256

/// Matrix registers: four of sums, two of data, two of weights, as kernels have them. All rows are full.
inline constexpr int kMatrixSums = 4;
#define OPFUSE_LOOP_MATRIX(NAME, INSTRUCTION)                                                                      \
  __attribute__((noinline)) inline void NAME(int64_t steps) {                                                      \
    alignas(64) uint8_t shapes[64] = {1};                                                                          \
    for (int r = 0; r < 8; ++r) shapes[16 + 2 * r] = 64, shapes[48 + r] = 16;                                      \
    asm volatile("ldtilecfg %0" ::"m"(shapes));                                                                    \
    asm volatile(                                                                                                  \
        "tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3\n\t"                             \
        "tilezero %%tmm4\n\ttilezero %%tmm5\n\ttilezero %%tmm6\n\ttilezero %%tmm7" ::);                            \
    for (int64_t i = 0; i < steps; ++i)                                                                            \
      asm volatile(INSTRUCTION " %%tmm6, %%tmm4, %%tmm0\n\t" INSTRUCTION " %%tmm7, %%tmm4, %%tmm1\n\t" INSTRUCTION \
                               " %%tmm6, %%tmm5, %%tmm2\n\t" INSTRUCTION " %%tmm7, %%tmm5, %%tmm3" ::);            \
    asm volatile("tilerelease" ::);                                                                                \
  }
OPFUSE_LOOP_MATRIX(int8_matrix, "tdpbusd")
OPFUSE_LOOP_MATRIX(bf16_matrix, "tdpbf16ps")
#undef OPFUSE_LOOP_MATRIX

/// Additions that wait for each other, 16 per step: one per cycle on every known core.
__attribute__((noinline)) inline void dependent_additions(int64_t steps) {
  uint64_t sum = 0, one = 1;
#define OPFUSE_ADD "add %1, %0\n\t"
#define OPFUSE_ADD_4 OPFUSE_ADD OPFUSE_ADD OPFUSE_ADD OPFUSE_ADD
  for (int64_t i = 0; i < steps; ++i)
    asm volatile(OPFUSE_ADD_4 OPFUSE_ADD_4 OPFUSE_ADD_4 OPFUSE_ADD_4 : "+r"(sum) : "r"(one) : "cc");
#undef OPFUSE_ADD_4
#undef OPFUSE_ADD
}

/// A multiply and an add per chain: what code for plain SSE2 can do.
__attribute__((noinline)) inline void multiply_add_128(int64_t steps) {
  const __m128 x = _mm_setzero_ps();
  __m128 sum[kChains / 2] = {}, product[kChains / 2] = {};
  for (int64_t i = 0; i < steps; ++i) {
#define OPFUSE_STEP(k)                                          \
  asm volatile("mulps %1, %0" : "+x"(product[k / 2]) : "x"(x)); \
  asm volatile("addps %1, %0" : "+x"(sum[k / 2]) : "x"(x));
    OPFUSE_STEP(0) OPFUSE_STEP(2) OPFUSE_STEP(4) OPFUSE_STEP(6) OPFUSE_STEP(8) OPFUSE_STEP(10)
#undef OPFUSE_STEP
  }
}

#undef OPFUSE_CHAINS

// Loads are written out: an array of vectors that the compiler does not unroll would be stored to the stack.
#define OPFUSE_READ_4(instruction, reg, type, at)                                                                    \
  {                                                                                                                  \
    type a, b, c, d;                                                                                                 \
    const auto* from = reinterpret_cast<const type##_u*>(at);                                                        \
    asm volatile(instruction " %4, %0\n\t" instruction " %5, %1\n\t" instruction " %6, %2\n\t" instruction " %7, %3" \
                 : "=" reg(a), "=" reg(b), "=" reg(c), "=" reg(d)                                                    \
                 : "m"(from[0]), "m"(from[1]), "m"(from[2]), "m"(from[3]));                                          \
  }

/// `floats` must be a multiple of 64.
__attribute__((target("avx512f"), noinline)) inline void read_512(const float* data, int64_t floats) {
  for (int64_t i = 0; i < floats; i += 64) OPFUSE_READ_4("vmovups", "v", __m512, data + i)
}

__attribute__((target("avx2"), noinline)) inline void read_256(const float* data, int64_t floats) {
  for (int64_t i = 0; i < floats; i += 32) OPFUSE_READ_4("vmovups", "x", __m256, data + i)
}

__attribute__((noinline)) inline void read_128(const float* data, int64_t floats) {
  for (int64_t i = 0; i < floats; i += 16) OPFUSE_READ_4("movups", "x", __m128, data + i)
}
#undef OPFUSE_READ_4

__attribute__((target("avx512f"), noinline)) inline void write_512(float* data, int64_t floats) {
  const __m512 value = _mm512_setzero_ps();
  for (int64_t i = 0; i < floats; i += 64)
    for (int j = 0; j < 4; ++j) asm volatile("vmovups %1, %0" : "=m"(*(__m512_u*)(data + i + 16 * j)) : "v"(value));
}

__attribute__((target("avx2"), noinline)) inline void write_256(float* data, int64_t floats) {
  const __m256 value = _mm256_setzero_ps();
  for (int64_t i = 0; i < floats; i += 64)
    for (int j = 0; j < 8; ++j) asm volatile("vmovups %1, %0" : "=m"(*(__m256_u*)(data + i + 8 * j)) : "x"(value));
}

}  // namespace opfuse::limit_loops
