// Modules, contexts and streams: several alive at once, on several threads, and after failures.
#include <thread>

#include "base/fail.hpp"
#include "cuda/compiled.hpp"
#include "cuda/emulated.hpp"
#include "device/driver.hpp"
#include "interp/random_inputs.hpp"
#include "proof/compare.hpp"
#include "runtime/device_run.hpp"

namespace opfuse::test {
namespace {

std::string one(const std::string& op, const std::string& shape) {
  return fmt::format("graph @{0}(%x: f32{1}) {{\n  %y = {0}(%x)\n  return %y\n}}\n", op, shape);
}

/// Runs and compares; a context's run without the public interface in between.
void expect_right(DeviceRun& run, const Graph& graph, uint64_t seed) {
  const std::vector<Tensor> inputs = random_inputs(graph, {.seed = seed});
  const Tensor want = interpret(graph, inputs).at(0);
  Tensor got(want.dtype(), want.sizes());
  const ArrayView in{inputs[0].dtype(), const_cast<void*>(inputs[0].data()), inputs[0].sizes()};
  const ArrayView out{got.dtype(), got.mutable_data(), got.sizes()};
  run.prepare({}, {}, 64, {&in, 1}, {&out, 1});
  run.run({});
  EXPECT_LE(difference(got, want).relative(), 2e-5);
}

TEST(DeviceLifetime, two_models_are_alive_at_once) {
  const Compiled a = compiled(one("relu", "[3,40]")), b = compiled(one("exp", "[5,24]"));
  const Executable first = Executable::from_artifact(a.artifact), second = Executable::from_artifact(b.artifact);
  const Context kept = first.create_context({}), other = second.create_context({});
  for (const auto& [model, executable] : {std::pair(&a, &first), std::pair(&b, &second), std::pair(&a, &first)}) {
    const std::vector<Tensor> inputs = random_inputs(model->fused, {.seed = 1});
    const Tensor got = run_executable(*executable, inputs).at(0);
    EXPECT_LE(difference(got, interpret(model->fused, inputs).at(0)).relative(), 2e-5);
  }
}

TEST(DeviceLifetime, contexts_of_two_threads_do_not_disturb_each_other) {
  const Compiled model = compiled(one("softmax", "[40,300]"));
  const auto program = std::make_shared<const DeviceProgram>(model.artifact);
  const auto work = [&](uint64_t seed) {
    DeviceRun run(program);
    for (uint64_t i = 0; i < 10; ++i) expect_right(run, model.fused, seed + i);
  };
  std::thread first(work, 1), second(work, 100);
  first.join();
  second.join();
}

TEST(DeviceLifetime, gives_back_all_it_took_also_when_it_cannot_start) {
  const size_t before = cuda::fake_driver_live();
  Compiled model = compiled(one("softmax", "[4,40]"));
  {
    const auto program = std::make_shared<const DeviceProgram>(model.artifact);
    DeviceRun run(program);
    expect_right(run, model.fused, 1);
    EXPECT_GT(cuda::fake_driver_live(), before);
  }
  EXPECT_EQ(cuda::fake_driver_live(), before);
  model.artifact.launches.at(0).symbol = "no_such_kernel";
  EXPECT_THROW(DeviceProgram{model.artifact}, Error);
  EXPECT_EQ(cuda::fake_driver_live(), before);
}

TEST(DeviceLifetime, takes_launches_again_after_one_was_refused_while_capturing) {
  Compiled model = compiled(one("relu", "[3,40]"));
  const size_t before = cuda::fake_driver_live();
  {
    const auto program = std::make_shared<const DeviceProgram>(model.artifact);
    DeviceRun run(program);
    expect_right(run, model.fused, 1);  // from the second run on they are captured
    int& block = model.artifact.launches.at(0).device.block;
    const int right = std::exchange(block, 2048);
    EXPECT_THROW(expect_right(run, model.fused, 1), Error);
    block = right;
    expect_right(run, model.fused, 2);
  }
  EXPECT_EQ(cuda::fake_driver_live(), before) << "a graph is left";
}

TEST(DeviceLifetime, runs_alone_on_blocks_that_touch) {
  const Compiled model = compiled(one("relu", "[64]"));
  const DeviceProgram program(model.artifact);
  alignas(64) float memory[128] = {};
  for (int i = 0; i < 64; ++i) memory[i] = static_cast<float>(i - 32);
  char* const bytes = reinterpret_cast<char*>(memory);
  const DeviceProgram::Block blocks[] = {{bytes + 256, 256}, {bytes, 256}};
  void* const pointers[] = {memory, memory + 64};
  program.run_alone(0, blocks, pointers, {}, {});
  for (int i = 0; i < 64; ++i) EXPECT_EQ(memory[64 + i], std::max(0.0f, memory[i])) << i;
  void* const outside[] = {memory, memory + 128};
  EXPECT_THROW(program.run_alone(0, blocks, outside, {}, {}), Error);
}

TEST(DeviceLifetime, says_why_there_is_none_and_what_to_do) {
  try {
    const DeviceContext context(cuda::fake_driver(), 0);
    const InContext here(context);
    const DeviceMemory memory(cuda::fake_driver(), size_t{1} << 50);
    FAIL() << "a pebibyte";
  } catch (const Error& e) {
    EXPECT_EQ(e.diagnostic().name, "out_of_memory");
    EXPECT_THAT(e.diagnostic().message, testing::HasSubstr("(out of memory)"));
    EXPECT_THAT(e.diagnostic().hint, testing::HasSubstr("smaller batches"));
  }
}

}  // namespace
}  // namespace opfuse::test
