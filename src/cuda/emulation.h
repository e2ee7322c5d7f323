// The CUDA dialect that generated kernels are written in, for a host compiler: stands in front of the same kernel
// text that NVRTC compiles. Threads are fibers of the host (src/device/emulation.hpp). A kernel's loads and stores of
// shared memory report themselves by the calls that -fsanitize=thread inserts, what is here by emulated_touched.
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static __attribute__((section("opfuse_shared"), aligned(16)))
#define __align__(n) __attribute__((aligned(n)))

#define EMULATED_UNSEEN __attribute__((no_sanitize("thread")))

struct EmulatedThread {  // layout of opfuse::cuda::EmulatedThread
  unsigned thread, block, block_size, grid_size;
  unsigned long long epoch, lot;
  unsigned char* launch_shared;
  size_t launch_shared_bytes;
  void (*barrier)();
  void (*warp_barrier)();
  void (*exchange)();
  char* (*slot)(int lane);
  void (*fault)();
  void (*touched)(const void* at, unsigned bytes, int how);
  void (*make_barrier)(const void* barrier, int arrivals);
  void (*barriers_are_visible)();
  void (*arrive)(const void* barrier, long long bytes);
  void (*wait_phase)(const void* barrier, int parity);
  void (*load_box)(void* to, const void* map, const int* at, int rank, const unsigned short* window,
                   const void* barrier);
  void (*store_box)(const void* map, const int* at, int rank, const void* from);
  void (*store_commit)();
  void (*store_wait)(int pending);
  void (*named_barrier)(int id, int threads);
  void (*wait_for_earlier)();
};
static EmulatedThread* emulated_thread;
static char emulated_no_shared[1] __attribute__((section("opfuse_shared"), used));
extern "C" char __start_opfuse_shared[] __attribute__((visibility("hidden")));
extern "C" char __stop_opfuse_shared[] __attribute__((visibility("hidden")));
extern "C" EMULATED_UNSEEN __attribute__((visibility("default"))) void opfuse_emulation_bind(EmulatedThread* thread,
                                                                                             char** begin, char** end) {
  emulated_thread = thread;
  *begin = __start_opfuse_shared;
  *end = __stop_opfuse_shared;
}

enum EmulatedAccess {
  kEmulatedRead,
  kEmulatedWrite,
  kEmulatedCopyBegins,
  kEmulatedCopyEnds,
  kEmulatedProductReads,
  kEmulatedFence
};
EMULATED_UNSEEN static inline void emulated_touched(const void* p, unsigned bytes, int how) {
  const char* at = (const char*)p;
  const char* given = (const char*)emulated_thread->launch_shared;
  if ((at >= __start_opfuse_shared && at < __stop_opfuse_shared) ||
      (at >= given && at < given + emulated_thread->launch_shared_bytes))
    emulated_thread->touched(p, bytes, how);
}
extern "C" {
#define EMULATED_ACCESS(name, bytes, how)                                                          \
  EMULATED_UNSEEN __attribute__((visibility("hidden"), used)) void __tsan_##name##bytes(void* p) { \
    emulated_touched(p, bytes, how);                                                               \
  }
#define EMULATED_ACCESSES(bytes)                          \
  EMULATED_ACCESS(read, bytes, kEmulatedRead)             \
  EMULATED_ACCESS(write, bytes, kEmulatedWrite)           \
  EMULATED_ACCESS(unaligned_read, bytes, kEmulatedRead)   \
  EMULATED_ACCESS(unaligned_write, bytes, kEmulatedWrite) \
  EMULATED_ACCESS(volatile_read, bytes, kEmulatedRead)    \
  EMULATED_ACCESS(volatile_write, bytes, kEmulatedWrite)
EMULATED_ACCESSES(1)
EMULATED_ACCESSES(2)
EMULATED_ACCESSES(4)
EMULATED_ACCESSES(8)
EMULATED_ACCESSES(16)
#define EMULATED_HOOK __attribute__((visibility("hidden"), used)) EMULATED_UNSEEN void
EMULATED_HOOK __tsan_init() {}
EMULATED_HOOK __tsan_func_entry(void*) {}
EMULATED_HOOK __tsan_func_exit() {}
EMULATED_HOOK __tsan_read_range(void* p, size_t bytes) { emulated_touched(p, (unsigned)bytes, kEmulatedRead); }
EMULATED_HOOK __tsan_write_range(void* p, size_t bytes) { emulated_touched(p, (unsigned)bytes, kEmulatedWrite); }
// Clang calls these for copies of structs.
EMULATED_HOOK* __tsan_memmove(void* to, const void* from, size_t bytes) {
  emulated_touched(from, (unsigned)bytes, kEmulatedRead);
  emulated_touched(to, (unsigned)bytes, kEmulatedWrite);
  return __builtin_memmove(to, from, bytes);
}
EMULATED_HOOK* __tsan_memcpy(void* to, const void* from, size_t bytes) { return __tsan_memmove(to, from, bytes); }
EMULATED_HOOK* __tsan_memset(void* to, int value, size_t bytes) {
  emulated_touched(to, (unsigned)bytes, kEmulatedWrite);
  return __builtin_memset(to, value, bytes);
}
}

struct EmulatedIndex {
  unsigned x;
};
#define threadIdx (EmulatedIndex{emulated_thread->thread})
#define blockIdx (EmulatedIndex{emulated_thread->block})
#define blockDim (EmulatedIndex{emulated_thread->block_size})
#define gridDim (EmulatedIndex{emulated_thread->grid_size})

// Vectors are moved whole, between addresses that are multiples of their size, as a device wants it.
template <int kWords>
struct EmulatedVector {
  unsigned words[kWords];
  EMULATED_UNSEEN EmulatedVector& operator=(const EmulatedVector& from) {
    if (((size_t)this | (size_t)&from) & (sizeof words - 1)) emulated_thread->fault();
    emulated_touched(&from, sizeof words, kEmulatedRead);
    emulated_touched(this, sizeof words, kEmulatedWrite);
    memmove(this, &from, sizeof words);
    return *this;
  }
} __attribute__((packed));
using uint1 = EmulatedVector<1>;
using uint2 = EmulatedVector<2>;
using uint4 = EmulatedVector<4>;

EMULATED_UNSEEN static inline void store_16(void* to, const void* from) {
  *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
}
// griddepcontrol: the launches in front of a programmatic one have ended, and their writes are there.
static inline void wait_for_earlier_kernels() { emulated_thread->wait_for_earlier(); }
static inline void let_later_kernels_begin() {}
static inline float quotient(float x, float y) { return x / y; }
static inline unsigned char* launch_shared() { return emulated_thread->launch_shared; }
static inline void emulated_land_some();
static inline void __syncthreads() {
  emulated_land_some();
  emulated_thread->barrier();
}
static inline void __syncwarp(unsigned = 0xffffffffu) { emulated_thread->warp_barrier(); }

template <class T>
EMULATED_UNSEEN static inline T emulated_exchange(T value, int from) {
  const int lane = (int)(emulated_thread->thread % 32);
  memcpy(emulated_thread->slot(lane), &value, sizeof value);
  emulated_thread->exchange();
  T result;
  memcpy(&result, emulated_thread->slot(from), sizeof result);
  emulated_thread->exchange();
  return result;
}
template <class T>
static inline T __shfl_xor_sync(unsigned, T value, int mask) {
  return emulated_exchange(value, (int)(emulated_thread->thread % 32) ^ mask);
}
template <class T>
static inline T __shfl_sync(unsigned, T value, int lane) {
  return emulated_exchange(value, lane);
}

template <class To, class From>
static inline To emulated_bits(From x) {
  static_assert(sizeof(To) == sizeof(From), "");
  To y;
  memcpy(&y, &x, sizeof y);
  return y;
}
static inline float __int_as_float(int x) { return emulated_bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return emulated_bits<float>(x); }
static inline unsigned __float_as_uint(float x) { return emulated_bits<unsigned>(x); }
static inline double __longlong_as_double(long long x) { return emulated_bits<double>(x); }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }

static inline float half_to_float(unsigned short bits) { return (float)emulated_bits<_Float16>(bits); }
static inline unsigned short float_to_half(float x) { return emulated_bits<unsigned short>((_Float16)x); }

// NaN where bits are set that the unit does not have: a factor that was not rounded.
static inline float emulated_tf32(unsigned bits) { return __uint_as_float(bits & 0x1fffu ? 0x7fc00000u : bits); }
static inline float float_to_tf32(float x) {
  const unsigned bits = __float_as_uint(x);
  return __uint_as_float((x != x ? bits | 0x400000u : bits + 0x1000u) & 0xffffe000u);
}

static inline float power_of_two(float x) { return exp2f(x); }
static inline unsigned pack_f16(float low, float high) {
  return (unsigned)float_to_half(low) | (unsigned)float_to_half(high) << 16;
}
static inline unsigned short emulated_bfloat(float x) {
  const unsigned bits = __float_as_uint(x);
  if (x != x) return (unsigned short)((bits >> 16) | 0x40u);
  return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
static inline unsigned pack_bf16(float low, float high) {
  return (unsigned)emulated_bfloat(low) | (unsigned)emulated_bfloat(high) << 16;
}

// Asynchronous copies land at any time between their issue and the wait for them. By the block's lot: all when they are
// waited for (who reads too early reads what was there before), all at once (who still reads what they replace reads
// them), or each by a lot of its own, at once, at a barrier or when waited for. Their bytes are under way until then.
struct EmulatedCopies {
  struct Copy {
    void* to;
    const void* from;
    bool inside, landed;
    int group;
  } copies[512];
  int count, group;
  unsigned random;
  unsigned long long epoch;
};
static EmulatedCopies emulated_copies[1024];
EMULATED_UNSEEN static inline EmulatedCopies& emulated_own_copies() {
  EmulatedCopies& own = emulated_copies[emulated_thread->thread];
  if (own.epoch != emulated_thread->epoch) {
    own.count = own.group = 0;
    own.random = (unsigned)emulated_thread->lot * 2654435761u + emulated_thread->thread * 40503u + 1u;
    own.epoch = emulated_thread->epoch;
  }
  return own;
}
EMULATED_UNSEEN static inline void emulated_land(EmulatedCopies::Copy& c) {
  if (c.landed) return;
  c.landed = true;
  if (c.inside)
    memcpy(c.to, c.from, 16);
  else
    memset(c.to, 0, 16);
}
EMULATED_UNSEEN static inline void emulated_land_by_lot(EmulatedCopies& own, EmulatedCopies::Copy& c) {
  const unsigned way = (unsigned)(emulated_thread->lot % 3);
  own.random = own.random * 1664525u + 1013904223u;
  if (way == 1 || (way == 2 && own.random >> 31)) emulated_land(c);
}
EMULATED_UNSEEN static inline void emulated_land_some() {
  EmulatedCopies& own = emulated_own_copies();
  for (int i = 0; i < own.count; ++i) emulated_land_by_lot(own, own.copies[i]);
}
EMULATED_UNSEEN static inline void copy_16(void* to, const void* from, unsigned bytes) {
  EmulatedCopies& own = emulated_own_copies();
  if (own.count == 512 || ((size_t)to & 15) || (bytes && (bytes != 16 || ((size_t)from & 15))))
    emulated_thread->fault();
  emulated_touched(to, 16, kEmulatedCopyBegins);
  own.copies[own.count] = {to, from, bytes != 0, false, own.group};
  emulated_land_by_lot(own, own.copies[own.count++]);
}
EMULATED_UNSEEN static inline void copy_commit() { ++emulated_own_copies().group; }
template <int kPending>
EMULATED_UNSEEN static inline void copy_wait() {
  EmulatedCopies& own = emulated_own_copies();
  int kept = 0;
  for (int i = 0; i < own.count; ++i) {
    EmulatedCopies::Copy& c = own.copies[i];
    if (c.group < own.group - kPending) {
      emulated_land(c);
      emulated_touched(c.to, 16, kEmulatedCopyEnds);
    } else {
      own.copies[kept++] = c;
    }
  }
  own.count = kept;
}

// What the lanes of a warp have shown each other.
struct EmulatedSlots {
  char* first;
  size_t apart;
  EMULATED_UNSEEN EmulatedSlots()
      : first(emulated_thread->slot(0)), apart((size_t)(emulated_thread->slot(1) - first)) {}
  template <class T>
  EMULATED_UNSEEN T of(int lane) const {
    T shown;
    memcpy(&shown, first + (size_t)lane * apart, sizeof shown);
    return shown;
  }
};
// Every lane shows its rows (or fragments) to the warp, then takes what it gets from the others'.
template <int kMatrices>
EMULATED_UNSEEN static inline void emulated_ldmatrix(unsigned (&r)[kMatrices], const void* row,
                                                     bool transposed = false) {
  const int lane = (int)(emulated_thread->thread % 32);
  if ((size_t)row & 15) emulated_thread->fault();
  if (lane < kMatrices * 8) emulated_touched(row, 16, kEmulatedRead);
  memcpy(emulated_thread->slot(lane), &row, sizeof row);
  emulated_thread->exchange();
  const EmulatedSlots slots;
  for (int i = 0; i < kMatrices; ++i) {
    unsigned short pair[2];
    for (int e = 0; e < 2; ++e) {
      const int along = lane % 4 * 2 + e, across = lane / 4;
      const char* from = slots.of<const char*>(i * 8 + (transposed ? along : across));
      memcpy(&pair[e], from + (transposed ? across : along) * 2, 2);
    }
    memcpy(&r[i], pair, 4);
  }
  emulated_thread->exchange();
}
static inline void ldmatrix_x4(unsigned (&r)[4], const void* row) { emulated_ldmatrix(r, row); }
static inline void ldmatrix_x4_transposed(unsigned (&r)[4], const void* row) { emulated_ldmatrix(r, row, true); }

struct EmulatedFragments {
  unsigned a[4], b[2];
};
// d += a b over 32 bytes of each row and column: 16 elements, of which a register has two, or 8 that fill it. A lane's
// results lie in rows lane / 4 and 8 below, columns lane % 4 * 2 and the next.
template <int kElements, class Element>
EMULATED_UNSEEN static inline void emulated_multiply_add(float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                                         unsigned b1, Element element) {
  constexpr int kHalf = kElements / 2, kEach = kElements / 8;
  const int lane = (int)(emulated_thread->thread % 32);
  const EmulatedFragments own = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
  memcpy(emulated_thread->slot(lane), &own, sizeof own);
  emulated_thread->exchange();
  const EmulatedSlots slots;
  float x[2][kElements], y[2][kElements];
  for (int i = 0; i < 4; ++i) {
    const EmulatedFragments left = slots.of<EmulatedFragments>(lane / 4 * 4 + i);
    const EmulatedFragments right[2] = {slots.of<EmulatedFragments>(lane % 4 * 8 + i),
                                        slots.of<EmulatedFragments>(lane % 4 * 8 + 4 + i)};
    for (int half = 0; half < 2; ++half)
      for (int e = 0; e < kEach; ++e)
        for (int r = 0; r < 2; ++r) {
          const int k = half * kHalf + i * kEach + e;
          x[r][k] = element(left.a[r + half * 2], e);
          y[r][k] = element(right[r].b[half], e);
        }
  }
  for (int e = 0; e < 4; ++e) {
    float sum = 0.0f;
    for (int k = 0; k < kElements; ++k) sum += x[e / 2][k] * y[e % 2][k];
    d[e] += sum;
  }
  emulated_thread->exchange();
}
EMULATED_UNSEEN static inline void mma_tf32(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  emulated_multiply_add<8>(d, a, b0, b1, [](unsigned bits, int) { return emulated_tf32(bits); });
}
static inline void mma_f16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  emulated_multiply_add<16>(d, a, b0, b1,
                            [](unsigned bits, int e) { return half_to_float((unsigned short)(bits >> e * 16)); });
}
static inline void mma_bf16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  emulated_multiply_add<16>(d, a, b0, b1, [](unsigned bits, int e) { return __uint_as_float(bits >> e * 16 << 16); });
}
