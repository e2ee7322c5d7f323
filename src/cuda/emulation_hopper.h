// The part of the dialect that is Hopper's (sm_90a), behind emulation.h: the copy engine and barriers of phases.
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
