// Tensor maps from a schedule to the copy engine: encoded by the driver when a context is prepared, kept by files.
#include <filesystem>

#include "base/fail.hpp"
#include "cuda/compiled.hpp"
#include "cuda/emulated.hpp"
#include "device/fake_tensor_maps.hpp"
#include "interp/random_inputs.hpp"
#include "proof/compare.hpp"
#include "testing/kernel_operands.hpp"

namespace opfuse::test {
namespace {

constexpr const char* kConvolutions = R"(graph @conv(%x: f16[2,16,9,9]) {
    %v = const rand<1> : f16[16,16,1,1]
    %w = const rand<2> : f16[64,16,3,3]
    %t = conv(%x, %v)
    %y = conv(%t, %w) {pads = [1, 1, 1, 1]}
    return %y
  })";

/// The second one's launch takes the schedule of the copy engine, which the emulated device's would not choose.
Artifact stays() {
  Compiled model = compiled(kConvolutions);
  const TargetInfo target = emulated_target();
  EXPECT_EQ(model.program.launches.size(), 2u);
  Schedule& schedule = model.program.launches.back().schedule;
  EXPECT_EQ(schedule.skeleton, "mma");
  schedule =
      parse_schedule("tma blocks=2 copy_a=0 copy_b=0 map_a=1 map_b=1 map_y=0 mma_m=64 mma_n=64 stages=3 vector=1");
  ArtifactOptions options;
  options.cache = false;
  return build_artifact(model.program, target, options);
}

TEST(TensorMaps, are_arguments_of_launches_and_kept_by_files) {
  const Artifact made = stays();
  size_t maps = 0;
  for (const ArtifactLaunch& launch : made.launches) maps += launch.device.maps.size();
  EXPECT_EQ(maps, 2u);
  const std::string path = testing::TempDir() + "/maps.opf";
  save_artifact(made, path);
  const Artifact loaded = load_artifact(path);
  for (size_t i = 0; i < made.launches.size(); ++i)
    EXPECT_EQ(loaded.launches[i].device.maps, made.launches[i].device.maps);
  const Tensor x = random_operand(DType::f16, {2, 16, 9, 9}, -1, 1, 7);
  const Tensor first = run_executable(Executable::from_artifact(made), {x}).at(0);
  const Tensor second = run_executable(Executable::from_artifact(loaded), {x}).at(0);
  EXPECT_TRUE(first.same_bits(second));
  EXPECT_LE(difference(first, interpret(compiled(kConvolutions).fused, {x}).at(0)).relative(), 2e-3);
  std::filesystem::remove(path);
}

TEST(TensorMaps, that_a_driver_refuses_are_refused) {
  alignas(64) static char memory[4096];
  cuda::CuTensorMap map;
  const unsigned long long sizes[] = {64, 30, 20, 2}, strides[] = {128, 3840, 76800};
  const unsigned box[] = {64, 64}, steps[] = {1, 1, 1, 1}, far[] = {1, 9, 1, 1}, wide[] = {72, 64};
  const auto tiled = [&](void* at, const unsigned long long* by, const unsigned* of, int swizzle) {
    return cuda::fake_tensor_map_tiled(&map, 6, 2, at, sizes, by, of, steps, 0, swizzle, 2, 0);
  };
  EXPECT_EQ(tiled(memory, strides, box, 3), 0);
  EXPECT_NE(tiled(memory + 8, strides, box, 3), 0) << "off 16 bytes";
  EXPECT_NE(tiled(memory, strides, wide, 3), 0) << "rows of more than the swizzle";
  const unsigned long long odd[] = {120};
  EXPECT_NE(tiled(memory, odd, box, 3), 0) << "a stride off 16 bytes";
  const auto image = [&](int low, int high, const unsigned* by) {
    const int lows[] = {low, low}, highs[] = {high, high};
    return cuda::fake_tensor_map_image(&map, 6, 4, memory, sizes, strides, lows, highs, 64, 64, by, 0, 3, 2, 0);
  };
  EXPECT_EQ(image(-1, -1, steps), 0);
  EXPECT_NE(image(-129, -1, steps), 0) << "a corner of more than 8 bits";
  EXPECT_NE(image(-1, -1, far), 0) << "a step of more than 8";
  EXPECT_NE(image(10, -12, steps), 0) << "no place for the window";
}

}  // namespace
}  // namespace opfuse::test
