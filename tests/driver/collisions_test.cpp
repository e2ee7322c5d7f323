// Maps of channels that lie multiples of 4 KiB apart fall into one set of a cache: their readers want them in blocks,
// or pack them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "driver/pipeline.hpp"
#include "fusion/plan.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

Program program_of(const std::string& text) {
  const TargetInfo target = parse_target("cpu:avx2");
  Graph graph = parse_graph(text, ops());
  prepare(graph, {}, nullptr);
  return lower_to_program(apply(graph, plan_graph(graph, target, {})), target);
}

bool blocks_intermediates(int64_t time) {
  const Program program = program_of(
      fmt::format("graph (%x: f32[1,32,{}]) {{ %w = const rand<1> : f32[32,32,3] %a = leaky_relu(%x) {{alpha=0.1}}\n"
                  " %y = conv(%a, %w) {{pads=[1,1]}} return %y }}",
                  time));
  return std::any_of(program.buffers.begin(), program.buffers.end(),
                     [](const Buffer& b) { return b.kind == BufferKind::intermediate && !b.layout.blocks.empty(); });
}

TEST(Collisions, RowsThatShareASetAreStoredInBlocks) {
  EXPECT_TRUE(blocks_intermediates(4096));
  EXPECT_FALSE(blocks_intermediates(4000));
}

bool packs_rows(int64_t side) {
  const Program program =
      program_of(fmt::format("graph (%x: f32[1,64,{0},{0}]) {{ %w = const rand<1> : f32[64,32,4,4]\n"
                             " %y = conv_transpose(%x, %w) {{strides=[2,2], pads=[1,1,1,1]}} return %y }}",
                             side));
  return program.launches.at(0).schedule.skeleton == "pixels";
}

TEST(Collisions, TransposedConvolutionsOfMapsThatShareASetPackThem) {
  EXPECT_TRUE(packs_rows(32));
  EXPECT_FALSE(packs_rows(37));
}

}  // namespace
}  // namespace opfuse
