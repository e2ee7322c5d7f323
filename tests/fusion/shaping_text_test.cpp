// What reports say of shaping.
#include "fusion/explain/shaping_text.hpp"

#include <gtest/gtest.h>

#include "shape/shaping_passes.hpp"

namespace opfuse {
namespace {

TEST(ShapingText, HasWordsForEveryPass) {
  for (const ShapingPass& pass : shaping_passes()) {
    const ShapeVerdict verdict{.pass = pass.name,
                               .subject = "attention",
                               .nodes = {"a", "b"},
                               .value = "t",
                               .numbers = {{"bytes", 2000000}, {"images", 2}, {"slices", 2}, {"streams", 2}}};
    EXPECT_EQ(shaping_lines({verdict}).size(), 1u) << pass.name;
  }
}

TEST(ShapingText, OfPairsSaysWhatIsSparedOrWhyNot) {
  ShapeVerdict pair{.pass = "join-means", .nodes = {"a", "b"}, .value = "t", .numbers = {{"bytes", 2000000}}};
  EXPECT_EQ(kind_of(pair), "means");
  EXPECT_EQ(sentence_of(pair), "summed while the map is made, 2.00 MB are not read again");
  pair.refused = Decline{"symbolic", "the extents are open", {}};
  EXPECT_EQ(sentence_of(pair), "two launches, symbolic: the extents are open");
  EXPECT_TRUE(shaping_lines({pair}).empty());
  EXPECT_TRUE(pairs_of({{.pass = "merge-siblings"}}).empty());
}

}  // namespace
}  // namespace opfuse
