// The texts. What is not PTX is the same text on the device and in the emulation.
#include "cuda/helpers.hpp"

#include "base/fail.hpp"

namespace opfuse::cuda {
namespace {

/// The tensor cores' product of a type, 32 bytes deep.
Helper mma(const std::string& type, const std::string& depth) {
  std::string text = R"(// d += a * b for 16 x 8 sums over DEPTH products.
__device__ __forceinline__ void mma_TYPE(float (&d)[4], const unsigned int (&a)[4], unsigned int b0, unsigned int b1) {
  asm volatile(
      "mma.sync.aligned.m16n8kDEPTH.row.col.f32.TYPE.TYPE.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
)";
  for (const auto& [word, by] : {std::pair("TYPE", type), std::pair("DEPTH", depth)})
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word))
      text.replace(at, std::string_view(word).size(), by);
  return {"mma_" + type, text, {}, true};
}

/// Two numbers as one register of an operand.
Helper pack(const std::string& type) {
  const std::string half = type == "f16" ? "f16x2" : "bf16x2";
  return {"pack_" + type,
          "// Two numbers rounded to " + type + ", the first in the low half.\n" +
              "__device__ __forceinline__ unsigned int pack_" + type + "(float low, float high) {\n" +
              "  unsigned int bits;\n  asm(\"cvt.rn." + half +
              ".f32 %0, %1, %2;\" : \"=r\"(bits) : \"f\"(high), \"f\"(low));\n  return bits;\n}\n",
          {},
          true};
}

std::vector<Helper> plain_helpers() {
  return {
      {"floor_div", R"(// Quotient rounded down, for any signs.
__device__ __forceinline__ long long floor_div(long long x, long long y) {
  const long long q = x / y;
  return q * y != x && (x < 0) != (y < 0) ? q - 1 : q;
}
)"},
      {"min_index", R"(__device__ __forceinline__ long long min_index(long long x, long long y) {
  return x < y ? x : y;
}
)"},
      {"max_index", R"(__device__ __forceinline__ long long max_index(long long x, long long y) {
  return x > y ? x : y;
}
)"},
      {"max_nan", R"(// Maximum; NaN when either is NaN (fmax would drop it).
template <class T>
__device__ __forceinline__ T max_nan(T x, T y) {
  const T best = y > x ? y : x;
  return y != y ? y : best;
}
)"},
      {"min_nan", R"(// Minimum; NaN when either is NaN (fmin would drop it).
template <class T>
__device__ __forceinline__ T min_nan(T x, T y) {
  const T best = y < x ? y : x;
  return y != y ? y : best;
}
)"},
      {"float_mod", R"(// Remainder with the divisor's sign, that of a zero too.
template <class T>
__device__ __forceinline__ T float_mod(T x, T y) {
  const T r = fmod(x, y);
  if (r == T(0)) return copysign(r, y);
  return (r < T(0)) != (y < T(0)) ? r + y : r;
}
)"},
      {"to_integer", R"(// Truncated towards zero and clamped to [low, high]; NaN gives 0.
template <class T>
__device__ __forceinline__ T to_integer(double x, T low, T high) {
  if (x != x) return T(0);
  if (x <= double(low)) return low;
  if (x >= double(high)) return high;
  return T(x);
}
)"},
      {"int_div", R"(// Division that never traps: a zero divisor gives 0.
template <class T>
__device__ __forceinline__ T int_div(T x, T y) {
  if (y == T(0)) return T(0);
  if (T(-1) < T(0) && y == T(-1)) return T(0ull - (unsigned long long)x);
  return T(x / y);
}
)"},
      {"int_rem", R"(// Remainder with the dividend's sign; 0 for a zero divisor.
template <class T>
__device__ __forceinline__ T int_rem(T x, T y) {
  if (y == T(0)) return T(0);
  if (T(-1) < T(0) && y == T(-1)) return T(0);
  return T(x % y);
}
)"},
      {"int_mod",
       R"(// Remainder with the divisor's sign; 0 for a zero divisor.
template <class T>
__device__ __forceinline__ T int_mod(T x, T y) {
  const T r = int_rem(x, y);
  return r != T(0) && (r < T(0)) != (y < T(0)) ? T(r + y) : r;
}
)",
       {"int_rem"}},
      {"int_pow", R"(// By squaring; negative exponents are those of 1 / x, truncated.
template <class T>
__device__ __forceinline__ T int_pow(T x, T y) {
  if (T(-1) < T(0) && y < T(0)) {
    if (x == T(1)) return T(1);
    if (x == T(-1)) return y % T(2) == T(0) ? T(1) : T(-1);
    return T(0);
  }
  unsigned long long result = 1;
  unsigned long long base = (unsigned long long)x;
  for (unsigned long long rest = (unsigned long long)y; rest != 0; rest >>= 1) {
    if (rest & 1) result *= base;
    base *= base;
  }
  return T(result);
}
)"},
      {"shift_left", R"(// Shifting by the width or more gives 0.
template <class T>
__device__ __forceinline__ T shift_left(T x, T y) {
  const unsigned long long by = (unsigned long long)y;
  return by >= 8 * sizeof(T) ? T(0) : T((unsigned long long)x << by);
}
)"},
      {"shift_right", R"(// Arithmetic for signed types; shifting by the width or more gives 0 (or -1).
template <class T>
__device__ __forceinline__ T shift_right(T x, T y) {
  const unsigned long long by = (unsigned long long)y;
  if (by < 8 * sizeof(T)) return T(x >> by);
  return x < T(0) ? T(-1) : T(0);
}
)"},
      {"bfloat_to_float", R"(__device__ __forceinline__ float bfloat_to_float(unsigned short bits) {
  return __uint_as_float((unsigned int)bits << 16);
}
)"},
      {"float_to_bfloat", R"(// Rounds to nearest, ties to even; NaN stays NaN.
__device__ __forceinline__ unsigned short float_to_bfloat(float x) {
  const unsigned int bits = __float_as_uint(x);
  if (x != x) return (unsigned short)((bits >> 16) | 0x40u);
  return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
)"},
      {"byte_to_float",
       R"(// A float of a byte or less. kind: 0 as IEEE, 1 all ones are NaN, 2 the code of -0 is NaN, 3 neither NaN nor infinity.
__device__ __forceinline__ float byte_to_float(unsigned int x, int sign, int mantissa, int bias, unsigned int greatest,
                                               int kind) {
  x &= (2u << sign) - 1u;
  const unsigned int size = x & ((1u << sign) - 1u);
  const float scale = __uint_as_float((unsigned int)(254 - bias) << 23);
  unsigned int v = __float_as_uint(__uint_as_float(size << (23 - mantissa)) * scale);
  if (kind == 0 && size == greatest + 1u) v = 0x7f800000u;
  if (size > greatest + (kind == 0 ? 1u : 0u)) v = 0x7fc00000u;
  v |= (x >> sign) << 31;
  return __uint_as_float(kind == 2 && x == 1u << sign ? 0x7fc00000u : v);
}
)"},
      {"exponent_to_float", R"(// 2^(x - 127); 255 is NaN.
__device__ __forceinline__ float exponent_to_float(unsigned int x) {
  return __uint_as_float(x == 0xffu ? 0x7fc00000u : x == 0u ? 0x00400000u : x << 23);
}
)"},
      {"float_to_byte", R"(// Rounds to nearest, ties to even; formats as in byte_to_float.
__device__ __forceinline__ unsigned char float_to_byte(float x, int sign, int mantissa, int bias,
                                                       unsigned int greatest, int kind) {
  const unsigned int bits = __float_as_uint(x), a = bits & 0x7fffffffu, minus = (bits >> 31) << sign;
  const int dropped = 23 - mantissa;
  unsigned int code = ((a + ((a >> dropped) & 1u) + ((1u << (dropped - 1)) - 1u)) >> dropped) -
                      ((unsigned int)(127 - bias) << mantissa);
  const unsigned int aligning = (unsigned int)(128 - bias + dropped) << 23;
  if (a < (unsigned int)(128 - bias) << 23)
    code = __float_as_uint(__uint_as_float(a) + __uint_as_float(aligning)) - aligning;
  const bool over = code > greatest;
  if (kind == 2) return (unsigned char)(over ? 1u << sign : code == 0u ? 0u : code | minus);
  if (kind == 3 && x != x) return (unsigned char)(1u << sign);
  if (kind == 0 && x != x) return (unsigned char)(0x7eu | minus);
  return (unsigned char)((over ? greatest + (kind == 3 ? 0u : 1u) : code) | minus);
}
)"},
      {"float_to_exponent", R"(// The nearest power of two: its exponent. The sign is lost.
__device__ __forceinline__ unsigned char float_to_exponent(float x) {
  const unsigned int a = __float_as_uint(x) & 0x7fffffffu;
  if (a >= 0x7f800000u) return (unsigned char)0xffu;
  return (unsigned char)((a + 0x3fffffu + (a >= 0x800000u ? 1u : 0u)) >> 23);
}
)"},
      {"same_bits", R"(// The bits of x as another type.
template <class To, class From>
__device__ __forceinline__ To same_bits(From x) {
  union {
    From from;
    To to;
  } bits;
  bits.from = x;
  return bits.to;
}
)"},
      {"half_to_float",
       R"(__device__ __forceinline__ float half_to_float(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
)",
       {},
       true},
      {"float_to_half",
       R"(// Rounds to nearest, ties to even.
__device__ __forceinline__ unsigned short float_to_half(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
)",
       {},
       true},
      {"float_to_tf32",
       R"(// Rounds to 10 bits of mantissa, halfway away from zero: what tensor cores read of a float.
__device__ __forceinline__ float float_to_tf32(float x) {
  unsigned int bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return __uint_as_float(bits);
}
)",
       {},
       true},
      {"store_16",
       R"(// 16 bytes to global memory as one instruction; the compiler may split an assignment.
__device__ __forceinline__ void store_16(void* to, const void* from) {
  const uint4 v = *reinterpret_cast<const uint4*>(from);
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
)",
       {},
       true},
      {"divided",
       R"(// x / y, where high + low is 1 / y: rounded once but for at most one fraction of x in 2^23, which is a unit off.
__device__ __forceinline__ float divided(float x, float high, float low) { return fmaf(x, high, x * low); }
)"},
      {"quotient",
       R"(// x / y within 2 units in the last place: enough for what is rounded to 16 bits.
__device__ __forceinline__ float quotient(float x, float y) {
  float q;
  asm("div.full.f32 %0, %1, %2;" : "=f"(q) : "f"(x), "f"(y));
  return q;
}
)",
       {},
       true},
      {"launch_shared",
       R"(// The shared memory that the launch gives.
__device__ __forceinline__ unsigned char* launch_shared() {
  extern __shared__ __align__(16) unsigned char launch_bytes[];
  return launch_bytes;
}
)",
       {},
       true},
      {"place", R"(// Where 16 bytes of a tile's row lie: the same chunk of eight rows is in all banks of shared memory.
template <int kChunks>
__device__ __forceinline__ int place(int row, int chunk) {
  constexpr int kPeriod = kChunks < 8 ? kChunks : 8;
  return row * kChunks + (chunk ^ row * kPeriod / 8 % kPeriod);
}
)"},
      {"copy_16",
       R"(// 16 bytes from global to shared memory, under way until copy_wait; zeros where `bytes` is 0 instead of 16.
__device__ __forceinline__ void copy_16(void* to, const void* from, unsigned int bytes) {
  const unsigned int at = (unsigned int)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
}
)",
       {},
       true},
      {"copy_commit",
       R"(// Ends a group of copies.
__device__ __forceinline__ void copy_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
)",
       {},
       true},
      {"copy_wait",
       R"(// Waits until at most kPending of this thread's groups are under way.
template <int kPending>
__device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
)",
       {},
       true},
      {"keep_order",
       R"(// What follows is not begun before: loads of many rows at a time would need more registers than there are.
__device__ __forceinline__ void keep_order() {
  __syncwarp();
}
)"},
      {"ldmatrix_x4",
       R"(// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void ldmatrix_x4(unsigned int (&r)[4], const void* row) {
  const unsigned int at = (unsigned int)__cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}
)",
       {},
       true},
      {"ldmatrix_x4_transposed",
       R"(// The same of matrices that lie with rows and columns exchanged.
__device__ __forceinline__ void ldmatrix_x4_transposed(unsigned int (&r)[4], const void* row) {
  const unsigned int at = (unsigned int)__cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}
)",
       {},
       true},
      {"power_of_two",
       R"(// 2^x within 2 units in the last place; what is subnormal becomes 0.
__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
)",
       {},
       true},
      pack("f16"),
      pack("bf16"),
      {"launch_shared_1024",
       R"(// The shared memory that the launch gives, where the swizzle of 128 bytes begins anew.
__device__ __forceinline__ unsigned char* launch_shared_1024() {
  extern __shared__ __align__(1024) unsigned char launch_bytes[];
  return launch_bytes;
}
)",
       {},
       true},
      mma("f16", "16"),
      mma("bf16", "16"),
      mma("tf32", "8"),
  };
}

}  // namespace

const std::vector<Helper>& all_helpers() {
  static const std::vector<Helper> helpers = [] {
    std::vector<Helper> all = plain_helpers();
    for (const auto& more : {group_product_helpers(), copy_engine_helpers()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return helpers;
}

const Helper& find_helper(std::string_view name) {
  for (const Helper& helper : all_helpers())
    if (helper.name == name) return helper;
  OPFUSE_CHECK(false, "no device function '{}'", name);
  return all_helpers().front();
}

}  // namespace opfuse::cuda
