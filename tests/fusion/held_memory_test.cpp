// Values in one piece of memory: the peak is that of a walk over all steps, and is found by looking at few of them.
#include "shape/held_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "interp/random_inputs.hpp"
#include "ir/graph.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

TEST(BytesAlive, highestIsThatOfAWalk) {
  Random rng(1, "alive");
  const size_t steps = 37;
  BytesAlive alive(steps);
  std::vector<int64_t> walked(steps, 0);
  for (int i = 0; i < 500; ++i) {
    const auto a = static_cast<size_t>(rng.between(0, steps - 1)), b = static_cast<size_t>(rng.between(0, steps - 1));
    const int64_t bytes = rng.between(0, 100);
    alive.add(std::min(a, b), std::max(a, b), bytes);
    for (size_t at = std::min(a, b); at <= std::max(a, b); ++at) walked[at] += bytes;
    ASSERT_EQ(alive.highest(), *std::max_element(walked.begin(), walked.end())) << i;
  }
}

/// Results of one value, each read by a node of its own behind all of them.
struct Readers {
  Graph graph;
  std::vector<Value*> values;
  explicit Readers(int count) {
    Value* x = graph.add_input("x", {DType::f32, {4}});
    const auto add = [&](Value* of) { return graph.add_node(ops().find("tanh"), AttrMap{}, {of})->output(); };
    for (int i = 0; i < count; ++i) values.push_back(add(x));
    std::vector<Value*> results;
    for (Value* v : values) results.push_back(add(v));
    graph.set_outputs(results);
  }
};

TEST(HeldMemory, aPieceLivesUntilTheLastReader) {
  Readers readers(4);
  HeldMemory memory(readers.graph);
  EXPECT_EQ(memory.peak(), 4 * 16);  // all four are stored, then one after the other is read
  Graph chain;
  Value* x = chain.add_input("x", {DType::f32, {4}});
  std::vector<Value*> values{x};
  for (int i = 0; i < 6; ++i)
    values.push_back(chain.add_node(ops().find("tanh"), AttrMap{}, {values.back()})->output());
  chain.set_outputs({values.back()});
  HeldMemory along(chain);
  EXPECT_EQ(along.peak(), 2 * 16);
  along.hold(values[1]);
  EXPECT_EQ(along.peak(), 2 * 16);
  along.hold(values[5]);  // from step 0 to step 5, beside two values of the chain
  EXPECT_EQ(along.peak(), 4 * 16);
  along.release_last();
  EXPECT_EQ(along.peak(), 2 * 16);
  along.hold(values[5]);
  along.release();
  EXPECT_EQ(along.peak(), 2 * 16);
  along.hold(values[1]), along.hold(values[5]);
  along.keep();
  along.hold(values[3]);
  along.release();
  EXPECT_EQ(along.peak(), 4 * 16);
}

/// Four times as many values in one piece: four times as many steps to look at, and a little for the depth of the tree.
TEST(HeldMemory, looksAtFewSteps) {
  double touched[2] = {};
  for (const int i : {0, 1}) {
    Readers readers(i == 0 ? 250 : 1000);
    HeldMemory memory(readers.graph);
    for (const Value* v : readers.values) memory.hold(v);
    touched[i] = static_cast<double>(memory.touched());
  }
  EXPECT_GT(touched[1], 1000);
  EXPECT_LT(touched[1], 6 * touched[0]);
}

}  // namespace
}  // namespace opfuse
