// The table of skeletons of the CUDA generator.
#include "cuda/skeletons.hpp"

#include <gtest/gtest.h>

#include <set>

#include "cuda/emitters.hpp"

namespace opfuse::test {
namespace {

TEST(Schedules, skeletons_are_those_that_are_emitted) {
  std::set<std::string_view> described, emitted;
  for (const Skeleton& skeleton : cuda::skeletons()) described.insert(skeleton.name);
  for (const cuda::Emitter& emitter : cuda::emitters())
    EXPECT_TRUE(emitted.insert(emitter.skeleton).second) << emitter.skeleton << " twice";
  EXPECT_EQ(described, emitted);
}

}  // namespace
}  // namespace opfuse::test
