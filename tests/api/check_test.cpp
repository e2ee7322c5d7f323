// Whether a model is supported, asked before compiling.
#include "opfuse/check.hpp"

#include <gtest/gtest.h>

#include "opfuse/network.hpp"

namespace opfuse {
namespace {

TEST(Unsupported, NamesWhatCompileRefuses) {
  Network net;
  auto x = net.input("x", {"4", "8"});
  auto y = net.op("relu", {x}, {}, "before");
  net.output("y", net.op("non_zero", {y}, {}, "where"));
  const Model model = net.model();
  const auto found = unsupported(model, Target::host());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].node, "where");
  EXPECT_EQ(found[0].op, "NonZero");
  EXPECT_NE(found[0].remedy.find("depends on the data"), std::string::npos) << found[0].remedy;
  EXPECT_FALSE(found[0].follows);
  EXPECT_THROW(compile(model, Target::host()), Error);
}

TEST(Unsupported, IsEmptyWhereAllCompiles) {
  Network net;
  auto x = net.input("x", {"batch", "8"});
  net.output("y", net.op("softmax", {x}));
  EXPECT_TRUE(unsupported(net.model(), Target::host()).empty());
}

}  // namespace
}  // namespace opfuse
