// Transposed convolutions drawn at random: images and volumes, each axis with its own extent, kernel, stride, dilation,
// padding at both ends and output padding; plain, grouped and depthwise; dense results (rows of pixels whose phases are
// put together) and wished layouts; every target.
#include <random>

#include "codegen/regions.hpp"
#include "codegen/run_kernel.hpp"
#include "cpu/pixels/pixel_view.hpp"

namespace opfuse::test {
namespace {

/// As region/lower_conv_transpose.cpp has it: phase g of position p is the result at stride * p - g + stride - 1 -
/// before.
struct Axis {
  int in = 1, kernel = 1, stride = 1, dilation = 1, before = 0, out = 1;
  int taps = 1, missing = 0, positions = 1, offset = 0;
};

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  Case layer(bool dense) {
    const bool volume = one_of({0, 0, 1}) != 0;
    std::vector<Axis> axes;
    for (int s = 0; s < (volume ? 3 : 2); ++s) axes.push_back(axis(volume));
    const std::string batch = one_of({0, 0, 1}) ? "n" : "2",
                      kind = one_of_text({"plain", "plain", "grouped", "depthwise"});
    Case c = wished(kind, region(kind, batch, axes));
    c.bindings = {{{"n", 1}}, {{"n", 3}}};
    if (batch != "n") c.bindings = {{}};
    for (const Param& p : parse_region(c.region).params)
      c.layouts.push_back(dense && p.role != ParamRole::constant ? Layout::dense(p.type.shape.rank()).text() : "");
    return c;
  }

 private:
  std::mt19937 random_;

  int one_of(const std::vector<int>& values) { return values[random_() % values.size()]; }
  std::string one_of_text(const std::vector<std::string>& values) { return values[random_() % values.size()]; }

  Axis axis(bool volume) {
    Axis a;
    a.in = volume ? one_of({1, 2, 3, 5, 9}) : one_of({1, 2, 3, 8, 11, 16, 19, 33});
    a.kernel = one_of({1, 2, 2, 3, 4, 4, 5});
    a.stride = one_of({1, 2, 2, 2, 3, 4});
    if (a.stride == 1) a.dilation = one_of({1, 2, 3});
    const int reach = a.dilation * (a.kernel - 1);
    a.before = one_of({0, 0, 1, 2, reach});
    const int whole = (a.in - 1) * a.stride + reach + 1 - a.before;
    a.out = std::max(1, whole - one_of({0, 0, 1, 2}) + one_of({0, 0, 1}));
    a.taps = (a.kernel + a.stride - 1) / a.stride;
    a.missing = a.stride * a.taps - a.kernel;
    a.positions = (a.out + a.before % a.stride + a.stride - 1) / a.stride;
    a.offset = a.before / a.stride - (a.taps - 1) * a.dilation;
    return a;
  }

  std::string region(const std::string& kind, const std::string& n, const std::vector<Axis>& axes) {
    const bool depthwise = kind == "depthwise";
    const int groups = depthwise ? one_of({2, 3, 16, 17}) : kind == "grouped" ? one_of({2, 3}) : 1;
    const int depth = depthwise ? 1 : one_of({1, 3, 16, 17, 32}), outputs = depthwise ? 1 : one_of({1, 3, 16, 20, 33});
    const int o = groups * outputs;
    std::string x = fmt::format("[{},{}", n, groups * depth), w = fmt::format("[{},{}", o, depth);
    std::string y = fmt::format("[{},{}", n, o), domain = y, reduce = depthwise ? "" : std::to_string(depth) + ",";
    int next = 2;
    std::vector<int> phase;
    for (const Axis& a : axes) {
      x += fmt::format(",{}", a.in);
      w += fmt::format(",{}", depthwise ? a.taps * a.stride : a.kernel);
      y += fmt::format(",{}", a.out);
      phase.push_back(a.stride > 1 ? next++ : -1);
      if (a.stride > 1) domain += fmt::format(",{}", a.stride);
    }
    const int first = next, channel = first + static_cast<int>(axes.size()), tap = channel + !depthwise;
    const std::string from = depthwise    ? "a1"
                             : groups > 1 ? fmt::format("{}*a1/{} + a{}", depth, outputs, channel)
                                          : fmt::format("a{}", channel);
    std::string data = "[a0, " + from, weights = depthwise ? "[a1, 0" : fmt::format("[a1, a{}", channel),
                result = "[a0, a1", same = result;
    bool missing = false;
    for (size_t s = 0; s < axes.size(); ++s) {
      const Axis& a = axes[s];
      const int p = first + static_cast<int>(s), t = tap + static_cast<int>(s), r = a.before % a.stride;
      domain += fmt::format(",{}", a.positions);
      reduce += fmt::format("{}{}", s ? "," : "", a.taps);
      data += fmt::format(", a{} + {}*a{} + {}", p, a.dilation, t, a.offset);
      weights += fmt::format(", {}*a{}", a.stride, t);
      result += fmt::format(", {}*a{}", a.stride, p);
      if (phase[s] < 0) continue;
      weights += fmt::format(" + a{} + {}", phase[s], depthwise ? 0 : -a.missing);
      result += fmt::format(" + -1*a{} + {}", phase[s], a.stride - 1 - r);
      missing |= !depthwise && a.missing > 0;
    }
    const bool residual = one_of({0, 1}) != 0;
    const std::string sum = residual ? "add(add(s0, r2), r3)" : "add(s0, r2)";
    return fmt::format(
        "region\nparam input f32{0}]\nparam constant f32{1}]\nparam constant f32[{2}]\n{3}param output f32{4}]\n"
        "stage {5}\n  domain {6}]\n  reduce [{7}]\n  read param 0 at {8}]\n  read param 1 at {9}]\n"
        "  read param 2 at [a1]\n{10}  reduction sum mul(select(in0, r0, 0), {11})\n"
        "  output param {12} f32{4}] at {13}] clipped = {14}\n",
        x, w, o, residual ? "param input f32" + y + "]\n" : "", y, depthwise ? "window" : "contraction", domain, reduce,
        data, weights, residual ? "  read param 3 at " + result + "]\n" : "", missing ? "select(in1, r1, 0)" : "r1",
        residual ? 4 : 3, result, one_of_text({sum, "max(" + sum + ", 0)", "exp(" + sum + ")"}));
  }
};

class DrawnTransposed : public testing::TestWithParam<int> {};

/// Targets take turns.
void check_layers(int seed, bool dense) {
  const std::vector<TargetInfo> targets = runnable_targets();
  for (size_t i = 0; i < 4; ++i) {
    const auto drawn = static_cast<unsigned>(seed) * 4 + static_cast<unsigned>(i) + (dense ? 0 : 1000);
    const TargetInfo& target = targets[(static_cast<size_t>(seed) + i) % targets.size()];
    const Case c = Draw(drawn).layer(dense);
    SCOPED_TRACE(fmt::format("seed {} on {}\n{}", drawn, target.name, c.region));
    EXPECT_TRUE(view_pixels(parse_region(c.region)));
    check_case(c, target);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST_P(DrawnTransposed, DenseResultsAreRight) { check_layers(GetParam(), true); }
TEST_P(DrawnTransposed, WishedLayoutsAreRight) { check_layers(GetParam(), false); }

INSTANTIATE_TEST_SUITE_P(Seeds, DrawnTransposed, testing::Range(0, 6));

}  // namespace
}  // namespace opfuse::test
