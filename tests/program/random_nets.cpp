// Random image nets (convolutions, pools, residuals, splits, concatenations, shuffles, reshapes): the program
// computes what the graph computes, whatever layouts, views and places its buffers got; and with nothing
// blocked, viewed or in place as well.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "program/build.hpp"
#include "region/lower_support.hpp"

namespace opfuse {
namespace {

using namespace testing_region;

class RandomNet {
 public:
  Net net;

  Graph& make() {
    pool_.push_back(net.input({1, 4 * (1 + pick(8)), 4 + pick(4), 4 + pick(4)}));
    const int nodes = 2 + pick(9);
    for (int i = 0; i < nodes; ++i) add();
    std::vector<Value*> outputs = {pool_.back()};
    for (Value* v : pool_)
      if (v != pool_.back() && v->producer != nullptr && pick(5) == 0) outputs.push_back(v);
    net.graph.set_outputs(outputs);
    return net.graph;
  }

 private:
  std::vector<Value*> pool_;

  static int64_t pick(int below) { return *rc::gen::inRange(0, below); }
  Value* any() { return pool_[static_cast<size_t>(pick(static_cast<int>(pool_.size())))]; }
  static int64_t channels(const Value* v) { return v->type.shape[1].value(); }

  Value* like(const Value* x) {
    for (Value* v : pool_)
      if (v != x && v->type.shape == x->type.shape && pick(2) == 0) return v;
    return const_cast<Value*>(x);
  }

  void add() {
    Value* x = any();
    if (x->type.shape.rank() != 4) return pool_.push_back(net("relu", {x}));
    switch (pick(9)) {
      case 0:
        return pool_.push_back(net.conv(x, 4 * (1 + pick(10)), 1));
      case 1:
        return pool_.push_back(net.conv(x, 8 * (1 + pick(4)), 3, {{"pads", Ints{1, 1, 1, 1}}}));
      case 2:
        return pool_.push_back(net.conv(x, channels(x), 3, {{"pads", Ints{1, 1, 1, 1}}, {"group", channels(x)}}));
      case 3:
        return pool_.push_back(net("add", {x, like(x)}));
      case 4:
        return pool_.push_back(net("concat", {x, like(x)}, {{"axis", pick(4)}}));
      case 5:
        return split(x);
      case 6:
        return shuffle(x);
      case 7:
        return pool_.push_back(
            net("max_pool", {x}, {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{1, 1}}}));
      default:
        return pool_.push_back(net("reshape", {x, net.integers({1, channels(x), -1})}));
    }
  }

  void split(Value* x) {
    const int64_t first = 1 + pick(static_cast<int>(channels(x)) - 1);
    Node* node = net.node("split", {x, net.integers({first, channels(x) - first})}, {{"axis", int64_t{1}}}, 2);
    for (Value* part : node->outputs) pool_.push_back(part);
  }

  void shuffle(Value* x) {
    const Shape& s = x->type.shape;
    if (channels(x) % 2 != 0) return pool_.push_back(net("relu", {x}));
    Value* y = net("reshape", {x, net.integers({s[0].value(), 2, channels(x) / 2, s[2].value(), s[3].value()})});
    y = net("transpose", {y}, {{"perm", Ints{0, 2, 1, 3, 4}}});
    pool_.push_back(net("reshape", {y, net.integers({s[0].value(), channels(x), s[2].value(), s[3].value()})}));
  }
};

void expect_same(const Graph& graph, const BuildOptions& options) {
  const std::vector<Tensor> inputs = random_inputs(graph);
  InterpretOptions exact;
  exact.keep_exact = true;
  const std::vector<Tensor> want = interpret(graph, inputs, exact);
  const Program program = build_program(graph, parse_target("cpu:avx512"), options);
  const std::vector<Tensor> got = interpret(program, inputs);
  RC_ASSERT(want.size() == got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    RC_ASSERT(want[i].sizes() == got[i].sizes());
    RC_ASSERT(difference(got[i], want[i]).relative() <= 1e-9);
  }
}

RC_GTEST_PROP(RandomNets, ProgramsComputeWhatTheirGraphsCompute, ()) {
  RandomNet random;
  const Graph& graph = random.make();
  BuildOptions options;
  options.wish_layouts = [](const Region& region) {
    LayoutWish wish{std::vector<std::optional<Layout>>(region.params.size())};
    if (region.stages[0].anchor == Anchor::map) return wish;
    for (size_t i = 0; i < wish.params.size(); ++i)
      if (region.params[i].role != ParamRole::constant && region.params[i].type.shape.rank() == 4)
        wish.params[i] = Layout::channels_blocked(4, 1, 16);
    return wish;
  };
  expect_same(graph, options);
  options.views = options.in_place = options.blocked_layouts = false;
  expect_same(graph, options);
}

}  // namespace
}  // namespace opfuse
