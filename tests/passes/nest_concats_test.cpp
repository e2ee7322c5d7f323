// Concats that repeat the operands of others: which read those, which stay, and that values stay equal.
#include <gtest/gtest.h>

#include "passes/passes.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

const testing::Rewrite kNested = [](Graph& graph) { run_passes(graph, {nest_concats()}); };

std::string graph_of(const std::string& body, const std::string& results) {
  return "graph (%a: f32[1,2,3], %b: f32[1,4,3], %c: f32[1,1,3], %d: f32[1,2,3]) {\n" + body + "\n return " + results +
         " }";
}

TEST(NestConcats, GrowingFeaturesOfADenseBlock) {
  testing::expect_rewrite(kNested,
                          graph_of("%p = concat(%a, %b) {axis = 1}\n %q = concat(%a, %b, %c) {axis = 1}\n"
                                   "%r = concat(%a, %b, %c, %d) {axis = 1}\n %s = neg(%p)\n %t = neg(%q)",
                                   "%r, %s, %t"),
                          graph_of("%p = concat(%a, %b) {axis = 1}\n %q = concat(%p, %c) {axis = 1}\n"
                                   "%r = concat(%q, %d) {axis = 1}\n %s = neg(%p)\n %t = neg(%q)",
                                   "%r, %s, %t"));
}

TEST(NestConcats, InAnyPlaceAndFromEitherEnd) {
  testing::expect_rewrite(kNested,
                          graph_of("%p = concat(%a, %b) {axis = 1}\n %q = concat(%c, %a, %b) {axis = -2}", "%p, %q"),
                          graph_of("%p = concat(%a, %b) {axis = 1}\n %q = concat(%c, %p) {axis = -2}", "%p, %q"));
}

TEST(NestConcats, NotAlongAnotherAxisNorInAnotherOrder) {
  const std::string kept = graph_of(
      "%p = concat(%a, %d) {axis = 0}\n %q = concat(%a, %d, %c) {axis = 1}\n %r = concat(%d, %a, %b) {axis = 1}\n"
      "%s = concat(%a, %b) {axis = 1}",
      "%p, %q, %r, %s");
  testing::expect_rewrite(kNested, kept, kept);
}

}  // namespace
}  // namespace opfuse
