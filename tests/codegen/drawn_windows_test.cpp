// Windowed layers drawn at random against the interpreter, on every target.
#include "codegen/drawn_layers.hpp"

namespace opfuse::test {
namespace {

class DrawnWindows : public testing::TestWithParam<int> {};

TEST_P(DrawnWindows, match_the_interpreter) {
  const std::vector<TargetInfo> targets = runnable_targets();
  constexpr int kLayers = 30;
  for (int i = 0; i < kLayers; ++i) {
    const int seed = GetParam() * kLayers + i;
    const Case c = Draw(static_cast<unsigned>(seed)).layer();
    const TargetInfo& target = targets[static_cast<size_t>(seed) % targets.size()];
    SCOPED_TRACE(fmt::format("seed {} on {}\n{}", seed, target.name, c.region));
    check_case(c, target);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, DrawnWindows, testing::Range(0, 12));

}  // namespace
}  // namespace opfuse::test
