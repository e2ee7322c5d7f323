// The part of the dialect that is Hopper's (sm_90a), behind emulation.h: products of four warps, the copy engine, and
// barriers of phases.
// Products of a group of four warps (sm_90a): computed when they are waited for, from what shared memory holds then;
// until then their sums hold NaN. The unit reads rows of 128 bytes in the swizzle of 128, and what ordinary stores and
// copies wrote only behind the writer's async_fence.
static inline unsigned char* launch_shared_1024() { return emulated_thread->launch_shared; }
static inline void async_fence() { emulated_thread->touched(emulated_thread->launch_shared, 0, kEmulatedFence); }
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
// What the unit reads for a warp: 16 rows of the left operand, all of the right one. It is done when the warp has
// waited, whichever of its threads says so: the reads are the first one's.
EMULATED_UNSEEN static inline void emulated_product_reads(const EmulatedProducts::Product& p) {
  const int warp = (int)(emulated_thread->thread / 32 % 4);
  if (emulated_thread->thread % 32) return;
  for (int chunk = 0; chunk < 2; ++chunk) {
    for (int row = warp * 16; row < warp * 16 + 16; ++row)
      emulated_thread->touched(emulated_operand(p.a, row, chunk * 16), 16, kEmulatedProductReads);
    for (int row = 0; row < p.columns; ++row)
      emulated_thread->touched(emulated_operand(p.b, row, chunk * 16), 16, kEmulatedProductReads);
  }
}
EMULATED_UNSEEN static inline void emulated_product(float* d, unsigned long long a, unsigned long long b, int columns,
                                                    int bytes, float (*element)(unsigned)) {
  EmulatedProducts& own = emulated_own_products();
  if (own.count == 32) emulated_thread->fault();
  EmulatedProducts::Product& p = own.products[own.count++];
  p.d = d, p.a = a, p.b = b, p.columns = columns, p.bytes = bytes, p.element = element;
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
EMULATED_UNSEEN static inline void emulated_multiply(EmulatedProducts::Product& p, bool follows) {
  const int lane = (int)(emulated_thread->thread % 32), warp = (int)(emulated_thread->thread / 32 % 4);
  emulated_product_reads(p);
  float x[2][16], y[16];
  for (int r = 0; r < 2; ++r) emulated_elements(p, p.a, warp * 16 + lane / 4 + r * 8, x[r]);
  for (int column = lane % 4 * 2; column < p.columns; column += column % 2 ? 7 : 1) {
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
  if (own.groups > done && done > 0)  // what is still under way follows what is done
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

// The copy engine. Coordinates are the tensor map's, innermost first.
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};
static inline void barrier_init(unsigned long long* b, int arrivals) { emulated_thread->make_barrier(b, arrivals); }
static inline void barrier_init_visible() { emulated_thread->barriers_are_visible(); }
static inline void barrier_arrive(unsigned long long* b) { emulated_thread->arrive(b, 0); }
static inline void barrier_expect(unsigned long long* b, int bytes) { emulated_thread->arrive(b, bytes); }
static inline void barrier_wait(unsigned long long* b, int parity) {
  emulated_land_some();
  emulated_thread->wait_phase(b, parity);
}
template <class... At>
EMULATED_UNSEEN static inline void emulated_load(void* to, const TensorMap* map, unsigned long long* b,
                                                 const unsigned short* window, At... at) {
  const int place[] = {at...};
  emulated_thread->load_box(to, map, place, (int)sizeof...(at), window, b);
}
template <class... At>
EMULATED_UNSEEN static inline void emulated_store(const TensorMap* map, const void* from, At... at) {
  const int place[] = {at...};
  emulated_thread->store_box(map, place, (int)sizeof...(at), from);
}
static inline void copy_box_2(void* to, const TensorMap* m, unsigned long long* b, int i, int j) {
  emulated_load(to, m, b, nullptr, i, j);
}
static inline void copy_box_3(void* to, const TensorMap* m, unsigned long long* b, int i, int j, int k) {
  emulated_load(to, m, b, nullptr, i, j, k);
}
static inline void copy_box_4(void* to, const TensorMap* m, unsigned long long* b, int i, int j, int k, int l) {
  emulated_load(to, m, b, nullptr, i, j, k, l);
}
static inline void copy_pixels_3(void* to, const TensorMap* map, unsigned long long* b, int c, int w, int n, int dw) {
  const unsigned short window[] = {(unsigned short)dw};
  emulated_load(to, map, b, window, c, w, n);
}
static inline void copy_pixels_4(void* to, const TensorMap* map, unsigned long long* b, int c, int w, int h, int n,
                                 int dw, int dh) {
  const unsigned short window[] = {(unsigned short)dw, (unsigned short)dh};
  emulated_load(to, map, b, window, c, w, h, n);
}
static inline void copy_pixels_5(void* to, const TensorMap* map, unsigned long long* b, int c, int w, int h, int d,
                                 int n, int dw, int dh, int dd) {
  const unsigned short window[] = {(unsigned short)dw, (unsigned short)dh, (unsigned short)dd};
  emulated_load(to, map, b, window, c, w, h, d, n);
}
static inline void store_box_2(const TensorMap* map, const void* from, int i, int j) {
  emulated_store(map, from, i, j);
}
static inline void store_box_3(const TensorMap* map, const void* from, int i, int j, int k) {
  emulated_store(map, from, i, j, k);
}
static inline void store_commit() { emulated_thread->store_commit(); }
template <int kPending>
static inline void store_wait_read() {
  emulated_thread->store_wait(kPending);
}
template <int kThreads>
static inline void group_sync(int id) {
  emulated_thread->named_barrier(id, kThreads);
}
template <int kRegisters>
static inline void registers_down() {}
template <int kRegisters>
static inline void registers_up() {}
