// How many groups run image by image: maps that stay near against weights that are read again.
#include "program/image_traffic.hpp"

#include <gtest/gtest.h>

namespace opfuse {
namespace {

constexpr ImageCaches kCaches = {100, 1000};

TEST(ImageTraffic, CountsTheWayThatMapsAreSpared) {
  const auto saved = [](int64_t map, int64_t batch) { return saved_by_image({{{map}, 0}}, 1, batch, kCaches); };
  EXPECT_EQ(saved(10, 10), 0);    // all of them fit a core's own cache
  EXPECT_EQ(saved(60, 2), 60);    // from the shared cache
  EXPECT_EQ(saved(60, 20), 120);  // from memory
  EXPECT_EQ(saved(600, 2), 600);  // from memory instead of the shared cache
  EXPECT_EQ(saved(6000, 2), 0);   // one image is too large already
}

TEST(ImageTraffic, WeightsThatFitCostNothing) {
  const std::vector<ImageTraffic> groups = {{{60, 60}, 70}, {{60}, 30}};
  EXPECT_EQ(saved_by_image(groups, 2, 2, kCaches), 180);
  EXPECT_EQ(groups_by_image(groups, 2, kCaches), 2u);
}

TEST(ImageTraffic, EndsWhereWeightsOutweighMaps) {
  EXPECT_EQ(groups_by_image({{{60, 60}, 90}, {{60, 60}, 150}, {{60}, 10}}, 2, kCaches), 1u);
  EXPECT_EQ(groups_by_image({{{60, 60}, 90}, {{60, 60}, 100}, {{60, 60}, 10}}, 2, kCaches), 3u);  // as a whole
  EXPECT_EQ(groups_by_image({{{60, 60}, 900}}, 2, kCaches), 0u);
}

TEST(ImageTraffic, GroupsThatSaveNothingAtTheEndStayABatch) {
  EXPECT_EQ(groups_by_image({{{60, 60}, 0}, {{10, 10}, 0}}, 2, kCaches), 1u);
  EXPECT_EQ(groups_by_image({}, 8, kCaches), 0u);
}

}  // namespace
}  // namespace opfuse
