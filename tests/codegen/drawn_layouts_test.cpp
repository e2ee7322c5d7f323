// Drawn layers under drawn layouts: what is seen and not refused is emitted, and right, wherever its operands lie.
#include "codegen/chain_regions.hpp"
#include "codegen/drawn_layers.hpp"
#include "cpu/skeletons.hpp"

namespace opfuse::test {
namespace {

/// Any region that skeletons see: a drawn layer, a product, a chain, means of a map.
class DrawnRegion {
 public:
  explicit DrawnRegion(unsigned seed) : seed_(seed), random_(seed) {}

  Case draw() {
    const int kind = one_of({0, 0, 0, 1, 2, 2, 3});
    if (kind == 0) return Draw(seed_).layer();
    const int c = one_of({3, 8, 16, 20, 33}), h = one_of({7, 10, 14}), w = one_of({5, 14, 19});
    if (kind == 1) return wished("product", gemm_region(std::to_string(h), one_of({1, 16, 40}), c));
    Conv window;
    window.stride = one_of({1, 1, 2});
    window.activation = one_of({0, 1}) ? "max({}, 0)" : "div({0}, add(1, exp(neg({0}))))";
    if (kind == 2) return wished("chain", chain_region(sized(c, h, w, one_of({8, 16, 24, 40}), window)));
    window.stride = 1;
    window.c = window.o = window.group = c, window.h = h, window.w = w;
    return wished("means", with_means(conv_region(window), "1", c, h, w, h % 2 ? 1 : 2));
  }

  /// Constants as they are wished, which programs grant; all else dense or in blocks along any axis but the first.
  std::vector<ParamLayout> layouts(const Region& region, const TargetInfo& target, bool dense) {
    const LayoutWish wish = wish_layouts(region, target);
    std::vector<ParamLayout> layouts;
    for (size_t p = 0; p < region.params.size(); ++p) {
      const Param& param = region.params[p];
      const auto rank = static_cast<int>(param.type.shape.rank());
      Layout layout = Layout::dense(param.type.shape.rank());
      const int axis = rank > 2 ? one_of({0, 1, 1, rank - 1, rank - 2}) : 0;
      if (param.role == ParamRole::constant)
        layout = wish.params[p].value_or(layout);
      else if (axis > 0 && !dense)
        layout = Layout::channels_blocked(param.type.shape.rank(), axis, target.lanes_f32());
      layouts.push_back({layout, dense_strides(layout, param.type.shape)});
    }
    return layouts;
  }

 private:
  unsigned seed_;
  std::mt19937 random_;
  int one_of(const std::vector<int>& values) { return values[random_() % values.size()]; }
};

class DrawnLayouts : public testing::TestWithParam<int> {};

TEST_P(DrawnLayouts, of_what_is_not_refused_are_emitted) {
  const std::vector<TargetInfo> targets = runnable_targets();
  constexpr int kRegions = 25;
  for (int i = 0; i < kRegions; ++i) {
    const auto seed = static_cast<unsigned>(GetParam() * kRegions + i);
    const TargetInfo& target = targets[seed % targets.size()];
    DrawnRegion drawn(seed);
    const Case c = drawn.draw();
    SCOPED_TRACE(fmt::format("seed {} on {}\n{}", seed, target.name, c.region));
    KernelSpec spec = spec_of(c, target);
    if (cannot_generate(spec.region, target)) continue;
    spec.layouts = drawn.layouts(spec.region, target, false);
    spec.schedule = choose_schedule(spec.region, spec.layouts, target);
    if (spec.schedule.skeleton.empty()) {
      EXPECT_FALSE(wish_layouts(spec.region, target).any) << "a skeleton takes any layouts, and has no candidate";
      spec.layouts = drawn.layouts(spec.region, target, true);
      spec.schedule = choose_schedule(spec.region, spec.layouts, target);
    }
    ASSERT_NE(spec.schedule.skeleton, "") << "legal, and no candidate under dense layouts";
    for (const ParamLayout& l : spec.layouts) SCOPED_TRACE(l.layout.text());
    check_spec(c, spec, target);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, DrawnLayouts, testing::Range(0, 8));

}  // namespace
}  // namespace opfuse::test
