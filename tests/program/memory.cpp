// The arena plan: buffers that are alive together never share memory, whatever the lifetimes and sizes.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "opfuse/error.hpp"
#include "program/lifetimes.hpp"
#include "program/min_cut.hpp"
#include "program/program.hpp"

namespace opfuse {
namespace {

struct Dice {
  uint64_t state;
  int64_t operator()(int64_t sides) {
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<int64_t>((z ^ (z >> 31)) % static_cast<uint64_t>(sides));
  }
};

Buffer buffer_of(Shape shape, BufferKind kind = BufferKind::intermediate) {
  Buffer buffer;
  buffer.kind = kind;
  buffer.type = {DType::f32, std::move(shape)};
  buffer.layout = Layout::dense(buffer.type.shape.rank());
  return buffer;
}

/// Launches that read a few earlier buffers and write a new one; sizes times `scale`.
Program random_program(uint64_t seed, const Dim& scale) {
  Dice dice{seed};
  Program program;
  const int count = 3 + static_cast<int>(dice(30));
  for (int i = 0; i < count; ++i) program.buffers.push_back(buffer_of({scale, Dim(1 + dice(500))}));
  for (int i = 1; i < count; ++i) {
    Launch launch;
    launch.name = "l" + std::to_string(i);
    launch.buffers.push_back(i - 1);
    for (int extra = static_cast<int>(dice(3)); extra > 0; --extra)
      launch.buffers.push_back(std::max<int>(0, i - 1 - static_cast<int>(dice(6))));
    launch.buffers.push_back(i);
    program.launches.push_back(launch);
  }
  return program;
}

void expect_no_overlap(const Program& program, const SymbolValues& symbols) {
  const std::vector<Lifetime> lives = lifetimes(program);
  const int64_t arena = program.arena_bytes.evaluate(symbols);
  for (size_t a = 0; a < program.buffers.size(); ++a) {
    const Buffer& first = program.buffers[a];
    const int64_t from = first.arena_offset.evaluate(symbols), to = from + bytes_of(first).evaluate(symbols);
    EXPECT_EQ(from % 64, 0);
    EXPECT_LE(to, arena);
    for (size_t b = a + 1; b < program.buffers.size(); ++b) {
      if (lives[a].first > lives[b].last || lives[b].first > lives[a].last) continue;
      const int64_t other = program.buffers[b].arena_offset.evaluate(symbols);
      const int64_t end = other + bytes_of(program.buffers[b]).evaluate(symbols);
      EXPECT_TRUE(to <= other || end <= from) << "buffers " << a << " and " << b;
    }
  }
}

TEST(MemoryPlan, BuffersAliveTogetherNeverOverlap) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Program program = random_program(seed, Dim(3));
    plan_memory(program);
    expect_no_overlap(program, {});
    EXPECT_LE(program.arena_bytes.value(), program.intermediate_bytes.value() + 64 * 64);
  }
}

TEST(MemoryPlan, SizesThatScaleWithOneSymbolArePlannedLikeConstants) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Program program = random_program(seed, Dim::symbol("n"));
    plan_memory(program);
    for (int64_t n : {1, 2, 3, 17}) expect_no_overlap(program, {{"n", n}});
    Program fixed = random_program(seed, Dim(1));
    plan_memory(fixed);
    EXPECT_EQ(program.arena_bytes.evaluate({{"n", 1}}), fixed.arena_bytes.value());
  }
}

TEST(MemoryPlan, OtherSymbolicSizesShareOnlyWithEqualOnes) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Program program = random_program(seed, Dim::symbol("n"));
    for (size_t i = 0; i < program.buffers.size(); i += 2)
      program.buffers[i].type.shape = {Dim::symbol("h") * Dim::symbol("n"), Dim(5)};
    plan_memory(program);
    expect_no_overlap(program, {{"n", 3}, {"h", 7}});
  }
}

TEST(MemoryPlan, AChainNeedsTwoBuffersNotAll) {
  Program program;
  for (int i = 0; i < 10; ++i) program.buffers.push_back(buffer_of({Dim(1024)}));
  for (int i = 1; i < 10; ++i) {
    Launch launch;
    launch.buffers = {i - 1, i};
    program.launches.push_back(launch);
  }
  plan_memory(program);
  EXPECT_EQ(program.arena_bytes.value(), 2 * 4096);
  EXPECT_EQ(program.intermediate_bytes.value(), 10 * 4096);
}

/// Where a launch walks through two maps side by side, they do not begin in the same sets of L1.
TEST(MemoryPlan, LargeMapsOfWholePagesAreStaggered) {
  Program program;
  for (int i = 0; i < 4; ++i) program.buffers.push_back(buffer_of({Dim(16 * 1024)}));
  Launch reads_all;
  for (int i = 0; i < 4; ++i) {
    Launch stores;
    stores.buffers = {i};
    program.launches.push_back(stores);
    reads_all.buffers.push_back(i);
  }
  program.launches.push_back(reads_all);
  plan_memory(program);
  std::set<int64_t> starts;
  for (const Buffer& buffer : program.buffers) starts.insert(buffer.arena_offset.value() % 4096);
  EXPECT_EQ(starts.size(), 4u);
  EXPECT_LE(program.arena_bytes.value(), 4 * (64 * 1024 + 1024));
}

/// Bytes alive together at the launch that needs most.
int64_t least_arena(const Program& program) {
  const std::vector<Lifetime> lives = lifetimes(program);
  int64_t most = 0;
  for (int l = 0; l < static_cast<int>(program.launches.size()); ++l) {
    int64_t sum = 0;
    for (size_t b = 0; b < lives.size(); ++b)
      if (lives[b].first <= l && l <= lives[b].last) sum += (bytes_of(program.buffers[b]).value() + 63) / 64 * 64;
    most = std::max(most, sum);
  }
  return most;
}

TEST(MemoryPlan, NeedsLittleMoreThanTheLaunchThatNeedsMost) {
  double worst = 1, sum = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Program program = random_program(seed, Dim(3));
    plan_memory(program);
    const double ratio = static_cast<double>(program.arena_bytes.value()) / static_cast<double>(least_arena(program));
    EXPECT_GE(ratio, 1);
    worst = std::max(worst, ratio);
    sum += ratio;
  }
  EXPECT_LT(worst, 1.15);
  EXPECT_LT(sum / 200, 1.01);
}

TEST(MemoryPlan, AViewKeepsItsRootAlive) {
  Program program;
  for (int i = 0; i < 4; ++i) program.buffers.push_back(buffer_of({Dim(16), Dim(16)}));
  program.buffers[1].type.shape = {Dim(4), Dim(16)};
  program.buffers[1].view_of = 0;
  program.buffers[1].view_offset = {Dim(8), Dim(0)};
  for (const std::vector<int>& buffers : {std::vector<int>{0}, std::vector<int>{2}, std::vector<int>{1, 3}}) {
    Launch launch;
    launch.buffers = buffers;
    program.launches.push_back(launch);
  }
  EXPECT_EQ(lifetimes(program)[0].last, 2);
  assign_strides(program);
  EXPECT_EQ(program.buffers[1].strides, program.buffers[0].strides);
  EXPECT_EQ(origin_in_root(program, 1), Dim(128));
}

TEST(TwoLabels, FindsTheCheapestAssignmentOfEveryTinyProblem) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Dice dice{seed};
    const int n = 2 + static_cast<int>(dice(7));
    std::vector<std::array<int64_t, 2>> unary(static_cast<size_t>(n));
    std::vector<std::array<int64_t, 3>> edges;
    TwoLabels labels(n);
    for (int v = 0; v < n; ++v)
      for (int l = 0; l < 2; ++l)
        labels.add_cost(v, l, unary[static_cast<size_t>(v)][static_cast<size_t>(l)] = dice(20));
    for (int e = 0; e < 2 * n; ++e) {
      edges.push_back({dice(n), dice(n), dice(15)});
      labels.add_edge(static_cast<int>(edges.back()[0]), static_cast<int>(edges.back()[1]), edges.back()[2]);
    }
    auto cost = [&](auto&& label) {
      int64_t total = 0;
      for (int v = 0; v < n; ++v) total += unary[static_cast<size_t>(v)][static_cast<size_t>(label(v))];
      for (const auto& [a, b, c] : edges) total += label(static_cast<int>(a)) != label(static_cast<int>(b)) ? c : 0;
      return total;
    };
    int64_t best = INT64_MAX;
    for (int mask = 0; mask < 1 << n; ++mask) best = std::min(best, cost([&](int v) { return (mask >> v) & 1; }));
    const std::vector<char> found = labels.solve();
    EXPECT_EQ(cost([&](int v) { return static_cast<int>(found[static_cast<size_t>(v)]); }), best);
  }
}

/// Fewer orders may need more memory; then the plan says so, and how to have them tried.
TEST(MemoryPlan, ALimitOnComparisonsIsSaidWhereItBinds) {
  int bound = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Program all = random_program(seed, Dim(1)), few = random_program(seed, Dim(1));
    for (Program* program : {&all, &few}) assign_strides(*program);
    plan_memory(all);
    plan_memory(few, 1);
    EXPECT_TRUE(all.notes.empty());
    EXPECT_LE(all.arena_bytes.value(), few.arena_bytes.value());
    if (all.arena_bytes == few.arena_bytes) continue;
    ++bound;
    ASSERT_EQ(few.notes.size(), 1u);
    EXPECT_NE(few.notes[0].find("--limit arena_comparisons=N"), std::string::npos) << few.notes[0];
  }
  EXPECT_GT(bound, 0);
}

}  // namespace
}  // namespace opfuse
