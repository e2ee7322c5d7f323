// Names that rewrites make are none that the model has.
#include "ir/free_names.hpp"

#include <gtest/gtest.h>

#include "ops/registry.hpp"

namespace opfuse {
namespace {

TEST(FreeNames, AreNoneThatTheModelHas) {
  const Graph graph = parse_graph("graph (%x: f32[2]) { %x_scale = relu(%x) %y = relu(%x_scale) return %y }", ops());
  FreeNames names(graph);
  EXPECT_EQ(names.take("x_zero"), "x_zero");
  EXPECT_EQ(names.take("x_scale"), "x_scale_2");
  EXPECT_EQ(names.take("x_scale"), "x_scale_3");
  EXPECT_EQ(names.take("x_zero"), "x_zero_2");
  EXPECT_EQ(names.take(""), "");
}

}  // namespace
}  // namespace opfuse
