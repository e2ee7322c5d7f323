#include "program/image_traffic.hpp"

namespace opfuse {
namespace {

double distance(int64_t bytes, const ImageCaches& caches) {
  if (bytes <= caches.own) return 0;
  return bytes <= caches.shared ? 1 : 2;
}

}  // namespace

/// A quarter of L3, which neighbours share: maps of 12 MB and more lost at 32 MB of it, those of 5.6 did not
/// (bench/NOTES.md).
ImageCaches image_caches(const TargetInfo& target) {
  constexpr int64_t kOfL3 = 4;
  return {target.l2_bytes, target.l3_bytes / kOfL3};
}

double saved_by_image(const std::vector<ImageTraffic>& groups, size_t count, int64_t batch, const ImageCaches& caches) {
  double saved = 0;
  int64_t weights = 0;
  for (size_t i = 0; i < count; ++i) {
    weights += groups[i].weights;
    for (int64_t map : groups[i].maps)
      saved += static_cast<double>(map) * (distance(batch * map, caches) - distance(map, caches));
  }
  return saved - static_cast<double>(weights) * distance(weights, caches);
}

size_t groups_by_image(const std::vector<ImageTraffic>& groups, int64_t batch, const ImageCaches& caches) {
  size_t best = 0;
  double most = 0;
  for (size_t count = 1; count <= groups.size(); ++count)
    if (const double saved = saved_by_image(groups, count, batch, caches); saved > most) most = saved, best = count;
  return best;
}

}  // namespace opfuse
