/* The inner tile of a product: sums[16][16] += data[16][depth] * weights[depth][16], all dense.
   opfuse packs data and weights into tiles (zeros beyond their edges), and stores the sums through the epilogue. */
#include <stdint.h>

typedef float row __attribute__((vector_size(64), aligned(4), may_alias));

void dense_16x16(float* sums, const float* data, const float* weights, int64_t depth) {
  for (int r = 0; r < 16; r += 4) {
    row* to = (row*)(sums + 16 * r);
    const float* x = data + r * depth;
    row a = to[0], b = to[1], c = to[2], d = to[3];
    for (int64_t k = 0; k < depth; ++k) {
      const row w = *(const row*)(weights + 16 * k);
      a += x[k] * w;
      b += x[depth + k] * w;
      c += x[2 * depth + k] * w;
      d += x[3 * depth + k] * w;
    }
    to[0] = a, to[1] = b, to[2] = c, to[3] = d;
  }
}
