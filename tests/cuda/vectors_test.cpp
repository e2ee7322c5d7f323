// Accesses of 8 and 16 bytes are taken only where addresses are multiples of them.
#include <fmt/format.h>

#include "cuda/compiled.hpp"
#include "cuda/emulated.hpp"
#include "interp/random_inputs.hpp"
#include "proof/compare.hpp"

namespace opfuse::test {
namespace {

TEST(VectorAccess, off_its_alignment_is_an_error_on_the_emulated_device) {
  const CudaCase& add = map_cases().at(0);
  const KernelSpec spec = spec_of(add, emulated_target());
  ASSERT_EQ(spec.schedule.get("vector", 1), 4);
  const cuda::KernelText kernel = cuda::write_kernel(spec, emulated_target());
  const cuda::EmulatedModule module(cuda::compile_for_emulation({kernel}));
  alignas(16) static float memory[3][16 * 64 + 4];
  for (int shifted = 0; shifted <= 3; ++shifted) {
    void* pointers[3] = {memory[0], memory[1], memory[2]};
    if (shifted < 3) pointers[shifted] = memory[shifted] + 1;
    void* arguments[3] = {&pointers[0], &pointers[1], &pointers[2]};
    const auto launch = [&] {
      module.launch(
          module.find(kernel.symbol),
          {.grid = static_cast<unsigned>(kernel.grid.constant().value()), .block = static_cast<unsigned>(kernel.block)},
          arguments, 1);
    };
    if (shifted < 3)
      EXPECT_THROW(launch(), cuda::EmulationError) << shifted;
    else
      EXPECT_NO_THROW(launch());
  }
}

TEST(VectorAccess, is_not_taken_where_a_part_of_a_result_starts_off_sixteen_bytes) {
  const Compiled alone = compiled("graph @alone(%z: f32[1,4,5,5]) { %y = relu(%z) return %y }");
  EXPECT_EQ(alone.program.launches.at(0).schedule.get("vector", 1), 4);
  // as the second part of a result it starts after 300 bytes
  const Compiled model = compiled(R"(graph @parts(%x: f32[1,3,5,5], %z: f32[1,4,5,5]) {
    %a = relu(%x)
    %b = relu(%z)
    %y = concat(%a, %b) {axis = 1}
    return %y
  })");
  ASSERT_EQ(model.program.launches.size(), 2u) << "parts are written in place";
  EXPECT_EQ(model.program.launches.at(1).schedule.get("vector", 1), 1);
  const Executable executable = Executable::from_artifact(model.artifact);
  const std::vector<Tensor> inputs = random_inputs(model.fused, {.seed = 1});
  EXPECT_TRUE(run_executable(executable, inputs).at(0).same_bits(interpret(model.fused, inputs).at(0)));
}

TEST(VectorAccess, of_rows_follows_where_they_start) {
  for (const auto& [first, vector] : {std::pair(75, 1), std::pair(76, 4)}) {  // elements of four bytes
    const Compiled model = compiled(fmt::format(R"(graph @rows(%x: f32[{}], %z: f32[1024]) {{
      %a = relu(%x)
      %b = softmax(%z) {{axis = 0}}
      %y = concat(%a, %b) {{axis = 0}}
      return %y
    }})",
                                                first));
    ASSERT_EQ(model.program.launches.size(), 2u) << "parts are written in place";
    const Schedule& softmax = model.program.launches.at(1).schedule;
    EXPECT_GT(softmax.get("per_thread", 0), 0);
    EXPECT_EQ(softmax.get("vector", 1), vector);
    const std::vector<Tensor> inputs = random_inputs(model.fused, {.seed = 1});
    const Tensor got = run_executable(Executable::from_artifact(model.artifact), inputs).at(0);
    EXPECT_LE(difference(got, interpret(model.fused, inputs).at(0)).relative(), 2e-5);
  }
}

TEST(VectorAccess, is_taken_where_a_part_starts_at_a_multiple) {
  const Compiled model = compiled(R"(graph @parts(%x: f32[1,4,5,5], %z: f32[1,4,5,5]) {
    %a = relu(%x)
    %b = relu(%z)
    %y = concat(%a, %b) {axis = 1}
    return %y
  })");
  ASSERT_EQ(model.program.launches.size(), 2u);
  for (const Launch& launch : model.program.launches) EXPECT_EQ(launch.schedule.get("vector", 1), 4) << launch.name;
}

/// A convolution of the middle part of a concatenation along the channels, which lie last: the part starts `first`
/// elements of two bytes into each pixel.
Compiled convolution_of_a_part(int first) {
  return compiled(fmt::format(R"(graph @product(%x: f16[1,{0},6,6], %z: f16[1,16,6,6], %v: f16[1,{1},6,6]) {{
    %f = const rand<1> : f16[16,16,3,3]
    %g = const rand<2> : f16[8,{2},3,3]
    %p = relu(%x)
    %q = exp(%z)
    %r = relu(%v)
    %c = concat(%p, %q, %r) {{axis = 1}}
    %m = conv(%q, %f) {{pads = [1,1,1,1]}}
    %o = conv(%c, %g) {{pads = [1,1,1,1]}}
    return %o, %m
  }})",
                              first, 16 - first, 32));
}

TEST(VectorAccess, copies_follow_where_an_operand_starts) {
  for (int first : {4, 8}) {
    const Compiled model = convolution_of_a_part(first);
    ASSERT_EQ(model.program.launches.size(), 5u);
    const Launch& part = model.program.launches.at(3);
    ASSERT_GT(part.schedule.get("mma_m", 0), 0);
    EXPECT_EQ(part.schedule.get("copy_a", -1), first % 8 == 0) << first;
    EXPECT_EQ(model.program.launches.at(4).schedule.get("copy_a", -1), 1) << "the whole";
    const Executable executable = Executable::from_artifact(model.artifact);
    CompareOptions options;
    options.group_tolerance = 2e-3;
    const std::vector<Tensor> inputs = random_inputs(model.fused, {.seed = 1});
    for (const GroupComparison& g : compare_groups(model.fused, model.program, executable, inputs, options))
      EXPECT_TRUE(g.ok) << g.name << ": " << g.difference.relative();
    const std::vector<Tensor> got = run_executable(executable, inputs), want = interpret(model.fused, inputs);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_LE(difference(got[i], want[i]).relative(), 2e-3) << first;
  }
}

}  // namespace
}  // namespace opfuse::test
