// What running a batch image by image saves: maps stay in a nearer cache until they are read, but every image reads the
// weights again.
//
//     saved(first n groups) = sum over their maps     bytes * (distance(batch * bytes) - distance(bytes))
//                             - weights * distance(weights)                                   all per image
//
// distance: 0 in a core's own cache, 1 in the shared one, 2 in memory (31 and 17 GB/s beside 159, bench/NOTES.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "target/target.hpp"

namespace opfuse {

/// Bytes that stay in a cache until they are read again.
struct ImageCaches {
  int64_t own = 0;     ///< of one core
  int64_t shared = 0;  ///< of all cores, as far as neighbours leave it
};
/// Of a CPU.
ImageCaches image_caches(const TargetInfo& target);

/// What one group reads and writes for an image, in bytes.
struct ImageTraffic {
  std::vector<int64_t> maps;  ///< operands and results
  int64_t weights = 0;        ///< that no group before it reads
};

/// Bytes per image, weighted by distance, that the groups save together at that batch; negative: they lose.
double saved_by_image(const std::vector<ImageTraffic>& groups, size_t count, int64_t batch, const ImageCaches& caches);

/// How many groups from the first on save most at that batch; 0: none saves.
size_t groups_by_image(const std::vector<ImageTraffic>& groups, int64_t batch, const ImageCaches& caches);

}  // namespace opfuse
