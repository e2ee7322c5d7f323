// Products of a group of four warps (sm_90a): computed when they are waited for, from what shared memory holds then;
// until then their sums hold NaN. The unit reads rows of 128 bytes in the swizzle of 128, and what ordinary stores and
// copies wrote only behind the writer's async_fence.
static inline unsigned char* launch_shared_1024() { return emulated_thread->launch_shared; }
static inline void async_fence() { emulated_thread->touched(emulated_thread->launch_shared, 0, kEmulatedFence); }
static inline unsigned long long operand_columns128(const void* p, int panel) {
  const size_t at = (size_t)((const unsigned char*)p - emulated_thread->launch_shared);
  return (unsigned long long)((at & 0x3ffff) >> 4) | (unsigned long long)(panel >> 4) << 16 | 64ull << 32 | 1ull << 62;
}
static inline unsigned long long operand_rows128(const void* p) {
  const size_t at = (size_t)((const unsigned char*)p - emulated_thread->launch_shared);
  return (unsigned long long)((at & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}
struct EmulatedProducts {
  struct Product {
    float* d;
    unsigned long long a, b;
    int columns, bytes;  // of an element
    float (*element)(unsigned);
    bool registers;     // the left operand is; the right one lies with its columns together
    float left[2][16];  // this lane's rows of it
    float before[128];
  } products[32];
  int count, ends[8], groups;
  unsigned long long epoch;
};
static EmulatedProducts emulated_products[1024];
EMULATED_UNSEEN static inline EmulatedProducts& emulated_own_products() {
  EmulatedProducts& own = emulated_products[emulated_thread->thread];
  if (own.epoch != emulated_thread->epoch) own.count = own.groups = 0, own.epoch = emulated_thread->epoch;
  return own;
}
EMULATED_UNSEEN static inline const unsigned char* emulated_operand(unsigned long long operand, int row, int byte) {
  if (operand >> 62 != 1 || (operand >> 32 & 0x3fff) != 64) emulated_thread->fault();
  size_t at = (size_t)((operand & 0x3fff) << 4) + (size_t)(row / 8 * 1024 + row % 8 * 128 + byte);
  at ^= (at >> 7 & 7) << 4;
  if (at + 16 > emulated_thread->launch_shared_bytes) emulated_thread->fault();
  return emulated_thread->launch_shared + at;
}
// Eight columns of row k of an operand whose columns lie together: panels of 64, as far apart as the descriptor says.
EMULATED_UNSEEN static inline const unsigned char* emulated_columns(unsigned long long operand, int k, int column) {
  if (operand >> 62 != 1 || (operand >> 32 & 0x3fff) != 64) emulated_thread->fault();
  const size_t panel = (size_t)((operand >> 16 & 0x3fff) << 4);
  size_t at = (size_t)((operand & 0x3fff) << 4) + (size_t)column / 64 * panel;
  at += (size_t)(k / 8 * 1024 + k % 8 * 128 + column % 64 / 8 * 16);
  at ^= (at >> 7 & 7) << 4;
  if (at + 16 > emulated_thread->launch_shared_bytes) emulated_thread->fault();
  return emulated_thread->launch_shared + at;
}
// What the unit reads for a warp: 16 rows of the left operand, all of the right one. It is done when the warp has
// waited, whichever of its threads says so: the reads are the first one's.
EMULATED_UNSEEN static inline void emulated_product_reads(const EmulatedProducts::Product& p) {
  const int warp = (int)(emulated_thread->thread / 32 % 4);
  if (emulated_thread->thread % 32) return;
  if (p.registers) {
    for (int k = 0; k < 16; ++k)
      for (int column = 0; column < p.columns; column += 8)
        emulated_thread->touched(emulated_columns(p.b, k, column), 16, kEmulatedProductReads);
    return;
  }
  for (int chunk = 0; chunk < 2; ++chunk) {
    for (int row = warp * 16; row < warp * 16 + 16; ++row)
      emulated_thread->touched(emulated_operand(p.a, row, chunk * 16), 16, kEmulatedProductReads);
    for (int row = 0; row < p.columns; ++row)
      emulated_thread->touched(emulated_operand(p.b, row, chunk * 16), 16, kEmulatedProductReads);
  }
}
// Fragments of 16 x 16 as mma's: a lane takes its two rows from the four that have them.
EMULATED_UNSEEN static inline void emulated_left(EmulatedProducts::Product& p, const unsigned* left) {
  const int lane = (int)(emulated_thread->thread % 32);
  const EmulatedFragments own = {{left[0], left[1], left[2], left[3]}, {0, 0}};
  memcpy(emulated_thread->slot(lane), &own, sizeof own);
  emulated_thread->exchange();
  const EmulatedSlots slots;
  for (int i = 0; i < 4; ++i) {
    const EmulatedFragments shown = slots.of<EmulatedFragments>(lane / 4 * 4 + i);
    for (int r = 0; r < 4; ++r)
      for (int e = 0; e < 2; ++e) p.left[r % 2][r / 2 * 8 + i * 2 + e] = p.element(shown.a[r] >> e * 16 & 0xffffu);
  }
  emulated_thread->exchange();
}
EMULATED_UNSEEN static inline void emulated_product(float* d, unsigned long long a, unsigned long long b, int columns,
                                                    int bytes, float (*element)(unsigned),
                                                    const unsigned* left = nullptr) {
  EmulatedProducts& own = emulated_own_products();
  if (own.count == 32) emulated_thread->fault();
  EmulatedProducts::Product& p = own.products[own.count++];
  p.d = d, p.a = a, p.b = b, p.columns = columns, p.bytes = bytes, p.element = element, p.registers = left != nullptr;
  if (left) emulated_left(p, left);
  const bool first = own.count == 1 || own.products[own.count - 2].d != d;
  for (int i = 0; i < columns / 2; ++i) p.before[i] = first ? d[i] : 0.0f;
  if (!first)
    for (int i = 0; i < columns / 2; ++i) p.before[i] = NAN;  // follows another one
  emulated_product_reads(p);
  for (int i = 0; i < columns / 2; ++i) d[i] = NAN;
}
EMULATED_UNSEEN static inline void product_begin() {}
EMULATED_UNSEEN static inline void product_commit() {
  EmulatedProducts& own = emulated_own_products();
  if (own.groups == 8) emulated_thread->fault();
  own.ends[own.groups++] = own.count;
}
// 32 bytes of a row: two places, each in one piece.
EMULATED_UNSEEN static inline void emulated_elements(const EmulatedProducts::Product& p, unsigned long long operand,
                                                     int row, float* values) {
  unsigned char bytes[32];
  for (int place = 0; place < 32; place += 16) memcpy(bytes + place, emulated_operand(operand, row, place), 16);
  for (int i = 0; i < 32 / p.bytes; ++i) {
    unsigned bits = 0;
    memcpy(&bits, bytes + i * p.bytes, (size_t)p.bytes);
    values[i] = p.element(bits);
  }
}
EMULATED_UNSEEN static inline void emulated_column(const EmulatedProducts::Product& p, int column, float* values) {
  for (int k = 0; k < 16; ++k) {
    unsigned short bits;
    memcpy(&bits, emulated_columns(p.b, k, column) + column % 8 * 2, 2);
    values[k] = p.element(bits);
  }
}
EMULATED_UNSEEN static inline void emulated_multiply(EmulatedProducts::Product& p, bool follows) {
  const int lane = (int)(emulated_thread->thread % 32), warp = (int)(emulated_thread->thread / 32 % 4);
  emulated_product_reads(p);
  float x[2][16], y[16];
  for (int r = 0; r < 2; ++r) {
    if (p.registers)
      memcpy(x[r], p.left[r], sizeof x[r]);
    else
      emulated_elements(p, p.a, warp * 16 + lane / 4 + r * 8, x[r]);
  }
  for (int column = lane % 4 * 2; column < p.columns; column += column % 2 ? 7 : 1) {
    if (p.registers)
      emulated_column(p, column, y);
    else
      emulated_elements(p, p.b, column, y);
    for (int r = 0; r < 2; ++r) {
      const int i = column / 8 * 4 + r * 2 + column % 2;
      float sum = 0.0f;
      for (int k = 0; k < 32 / p.bytes; ++k) sum += x[r][k] * y[k];
      p.d[i] = (follows ? p.d[i] : p.before[i]) + sum;
    }
  }
}
template <int kPending>
EMULATED_UNSEEN static inline void product_wait() {
  EmulatedProducts& own = emulated_own_products();
  int done = 0, first = 0;
  while (own.groups - done > kPending) {
    for (int i = first; i < own.ends[done]; ++i)
      emulated_multiply(own.products[i], i > 0 && own.products[i - 1].d == own.products[i].d);
    first = own.ends[done++];
  }
  // what is still under way follows what is done
  if (own.groups > done && done > 0 && own.products[first - 1].d == own.products[first].d)
    for (int i = 0; i < own.products[first].columns / 2; ++i) {
      own.products[first].before[i] = own.products[first].d[i];
      own.products[first].d[i] = NAN;
    }
  for (int i = first; i < own.count; ++i) own.products[i - first] = own.products[i];
  for (int g = done; g < own.groups; ++g) own.ends[g - done] = own.ends[g] - first;
  own.count -= first;
  own.groups -= done;
  emulated_thread->exchange();  // .sync.aligned
}
static inline float emulated_half_value(unsigned bits) { return half_to_float((unsigned short)bits); }
static inline float emulated_bfloat_value(unsigned bits) { return __uint_as_float(bits << 16); }
#define EMULATED_PRODUCT(type, columns, bytes, element)                                                               \
  static inline void product_##type##_##columns(float(&d)[columns / 2], unsigned long long a, unsigned long long b) { \
    emulated_product(d, a, b, columns, bytes, element);                                                               \
  }
EMULATED_PRODUCT(f16, 64, 2, emulated_half_value)
EMULATED_PRODUCT(f16, 128, 2, emulated_half_value)
EMULATED_PRODUCT(f16, 256, 2, emulated_half_value)
EMULATED_PRODUCT(bf16, 64, 2, emulated_bfloat_value)
EMULATED_PRODUCT(bf16, 128, 2, emulated_bfloat_value)
EMULATED_PRODUCT(bf16, 256, 2, emulated_bfloat_value)
EMULATED_PRODUCT(tf32, 64, 4, emulated_tf32)
EMULATED_PRODUCT(tf32, 128, 4, emulated_tf32)
EMULATED_PRODUCT(tf32, 256, 4, emulated_tf32)
#define EMULATED_PRODUCT_OF_REGISTERS(type, columns, element)                                               \
  static inline void product_of_registers_##type##_##columns(float(&d)[columns / 2], const unsigned(&a)[4], \
                                                             unsigned long long b) {                        \
    emulated_product(d, 0, b, columns, 2, element, a);                                                      \
  }
EMULATED_PRODUCT_OF_REGISTERS(f16, 64, emulated_half_value)
EMULATED_PRODUCT_OF_REGISTERS(f16, 128, emulated_half_value)
EMULATED_PRODUCT_OF_REGISTERS(bf16, 64, emulated_bfloat_value)
EMULATED_PRODUCT_OF_REGISTERS(bf16, 128, emulated_bfloat_value)
