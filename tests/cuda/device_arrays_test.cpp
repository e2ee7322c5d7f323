// Arrays that stay on a device, the caller's streams, and graphs whose addresses change.
#include <cmath>
#include <limits>
#include <thread>

#include "base/fail.hpp"
#include "cuda/compiled.hpp"
#include "cuda/emulated.hpp"
#include "device/driver.hpp"
#include "opfuse/device_buffer.hpp"
#include "runtime/device_run.hpp"

namespace opfuse::test {
namespace {

const cuda::Driver& d = cuda::fake_driver();
constexpr int kRows = 3, kColumns = 40, kSize = kRows * kColumns;
constexpr size_t kBytes = kSize * sizeof(float);

/// y = 2 x and, of open length, y = x + x; compiled once.
const Compiled& model() {
  static const Compiled made = compiled("graph @twice(%x: f32[3,40]) {\n  %y = add(%x, %x)\n  return %y\n}\n");
  return made;
}
const Executable& twice() {
  static const Executable exe = Executable::from_artifact(model().artifact);
  return exe;
}
const Executable& open_twice() {
  static const Executable exe = Executable::from_artifact(
      compiled("graph @open(%x: f32[n,40]) {\n  %s = softmax(%x) {axis = 1}\n  %y = add(%s, %s)\n  return %y\n}\n")
          .artifact);
  return exe;
}

std::vector<float> counted(float first, size_t size = kSize) {
  std::vector<float> values(size);
  for (float& v : values) v = first++;
  return values;
}
std::vector<float> doubled(std::vector<float> values) {
  for (float& v : values) v *= 2;
  return values;
}

DeviceBuffer buffer_of(const std::vector<float>& values, int device = 0) {
  DeviceBuffer buffer(twice(), values.size() * sizeof(float), device);
  buffer.write(values.data(), buffer.bytes());
  return buffer;
}
std::vector<float> values_of(const DeviceBuffer& buffer) {
  std::vector<float> values(buffer.bytes() / sizeof(float));
  buffer.read(values.data(), buffer.bytes());
  return values;
}
ArrayView view_of(const DeviceBuffer& buffer) { return buffer.view(DType::f32, {kRows, kColumns}); }

/// A stream of a caller's, on a device of its choice.
class Stream {
 public:
  explicit Stream(int device = 0, unsigned flags = 1) : context_(d, device), stream_(d) {
    const InContext here(context_);
    d.check(d.cuStreamCreate(stream_.slot(), flags), "stream");
  }
  ~Stream() {
    const InContext here(context_);
    stream_.reset();
  }
  void* get() const { return stream_.get(); }
  cuda::CuStream cu() const { return stream_.get(); }
  const DeviceContext& context() const { return context_; }
  void wait() const { d.check(d.cuStreamSynchronize(stream_.get()), "wait"); }

 private:
  DeviceContext context_;
  DeviceStream stream_;
};

template <class Call>
Diagnostic refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.diagnostic();
  }
  return {};
}

TEST(DeviceArrays, are_read_and_written_where_they_are) {
  const DeviceBuffer x = buffer_of(counted(1)), y(twice(), kBytes);
  Context context = twice().create_context();
  context.bind("x", view_of(x));
  context.bind("y", view_of(y));
  context.run();
  EXPECT_EQ(values_of(y), doubled(counted(1)));
  EXPECT_EQ(context.output("y").data, y.data());
  EXPECT_EQ(context.device(), 0);
}

TEST(DeviceArrays, go_together_with_arrays_of_the_host) {
  const std::vector<float> in = counted(5);
  std::vector<float> out(kSize);
  const DeviceBuffer x = buffer_of(in), y(twice(), kBytes);
  Context context = twice().create_context();
  context.bind("x", view_of(x));
  context.bind("y", view(out, {kRows, kColumns}));
  context.run();
  EXPECT_EQ(out, doubled(in));
  context.bind("x", view(out, {kRows, kColumns}));
  context.bind("y", view_of(y));
  context.run();
  EXPECT_EQ(values_of(y), doubled(out));
}

TEST(DeviceArrays, are_closed_to_host_code) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const DeviceBuffer x = buffer_of(counted(1));
  EXPECT_DEATH({ *static_cast<volatile float*>(x.data()) = 1; }, "");
}

TEST(DeviceArrays, results_stay_there_for_the_next_model) {
  const DeviceBuffer x = buffer_of(counted(1));
  Context first = twice().create_context({.device_results = true}), second = twice().create_context();
  first.bind("x", view_of(x));
  first.run();
  EXPECT_EQ(first.output("y").device, 0);
  second.bind("x", first.output("y"));
  second.run();
  const ArrayView y = second.output("y");
  ASSERT_EQ(y.device, kHostMemory);
  EXPECT_EQ(std::vector<float>(static_cast<float*>(y.data), static_cast<float*>(y.data) + kSize),
            doubled(doubled(counted(1))));
}

TEST(DeviceArrays, that_cannot_be_used_are_refused_with_what_to_do) {
  std::vector<float> host(kSize);
  const DeviceBuffer x(twice(), kBytes + 64), other(twice(), kBytes, 1);
  Context context = twice().create_context();
  const auto bind = [&](ArrayView array) { return refusal([&] { context.bind("x", array); }); };
  ArrayView lying = view(host, {kRows, kColumns});
  lying.device = 0;
  ArrayView shifted = view_of(x);
  shifted.data = static_cast<char*>(shifted.data) + 4;
  ArrayView undeclared = view_of(x);
  undeclared.device = kHostMemory;
  ArrayView behind = view_of(x);
  behind.data = static_cast<char*>(behind.data) + 128;
  ArrayView elsewhere = view_of(other);
  elsewhere.device = 0;
  const struct {
    ArrayView array;
    const char *message, *hint;
  } cases[] = {{lying, "'x' says that it lies on device 0, but its pointer is the host's", "kHostMemory"},
               {view_of(other), "'x' lies on device 1, and this context runs on device 0", "ContextOptions::device"},
               {elsewhere, "'x' lies on device 1, and this context runs on device 0", "copy it there"},
               {shifted, "'x' starts 4 bytes behind a multiple of 16", "clone"},
               {undeclared, "bound as the host's, but its pointer is memory of device 0", "ArrayView::device = 0"},
               {behind, "'x' takes 480 bytes, but its allocation ends after 416", "shape"},
               {x.view(DType::f32, {kColumns, kRows}), "has shape [40,3]", ""}};
  for (const auto& c : cases) {
    const Diagnostic found = bind(c.array);
    EXPECT_EQ(found.code, "E0602") << c.message;
    EXPECT_THAT(found.message, testing::HasSubstr(c.message));
    EXPECT_THAT(found.hint, testing::HasSubstr(c.hint));
  }
  EXPECT_THAT(refusal([] { twice().create_context({.device = 2}); }).message,
              testing::HasSubstr("there is no device 2: this process sees 2"));
  EXPECT_THAT(refusal([&] { x.view(DType::f32, {500}); }).message, testing::HasSubstr("has 544"));
}

TEST(DeviceArrays, of_another_device_run_there) {
  const DeviceBuffer x = buffer_of(counted(1), 1), y(twice(), kBytes, 1);
  Context context = twice().create_context({.device = 1});
  context.bind("x", view_of(x));
  context.bind("y", view_of(y));
  context.run();
  EXPECT_EQ(values_of(y), doubled(counted(1)));
}

TEST(DeviceStreams, are_the_caller_s_and_not_waited_for) {
  const Stream stream;
  const std::vector<float> in = counted(1);
  std::vector<float> out(kSize, -1);
  const DeviceBuffer x(twice(), kBytes), between(twice(), kBytes);
  Context first = twice().create_context(), second = twice().create_context();
  first.bind("x", view_of(x));
  first.bind("y", view_of(between));
  second.bind("x", view_of(between));
  second.bind("y", view(out, {kRows, kColumns}));
  for (int run = 0; run < 3; ++run) {  // launched, captured, replayed
    std::fill(out.begin(), out.end(), -1.0f);
    d.check(d.cuMemcpyHtoDAsync_v2(reinterpret_cast<uintptr_t>(x.data()), in.data(), kBytes, stream.cu()), "copy");
    first.run_on(stream.get());
    second.run_on(stream.get());
    EXPECT_EQ(out[0], -1) << "a run on the caller's stream waited";
    stream.wait();
    EXPECT_EQ(out, doubled(doubled(in))) << run;
  }
}

TEST(DeviceStreams, of_one_context_run_in_the_order_of_the_calls) {
  const Stream a, b;
  const DeviceBuffer first = buffer_of(counted(1)), second = buffer_of(counted(100)), y(twice(), kBytes);
  Context context = twice().create_context();
  context.bind("y", view_of(y));
  context.bind("x", view_of(first));
  context.run_on(a.get());
  context.bind("x", view_of(second));
  context.run_on(b.get());
  b.wait();
  a.wait();
  EXPECT_EQ(values_of(y), doubled(counted(100)));
  context.bind("x", view_of(first));
  context.run_on(a.get());
  context.bind("x", view_of(second));
  context.run();  // on its own stream
  a.wait();
  EXPECT_EQ(values_of(y), doubled(counted(100)));
}

TEST(DeviceStreams, of_other_contexts_are_refused) {
  const DeviceBuffer x = buffer_of(counted(1));
  Context context = twice().create_context({.device_results = true});
  context.bind("x", view_of(x));
  const Stream other(1);
  Diagnostic found = refusal([&] { context.run_on(other.get()); });
  EXPECT_EQ(found.code, "E0602");
  EXPECT_THAT(found.message, testing::HasSubstr("another context than that of device 0"));
  EXPECT_THAT(found.hint, testing::HasSubstr("primary context"));
  void* gone = Stream().get();
  found = refusal([&] { context.run_on(gone); });
  EXPECT_EQ(found.code, "E0602");
  EXPECT_THAT(found.hint, testing::HasSubstr("destroyed"));
  context.run_on(nullptr);  // the default stream
}

TEST(DeviceStreams, leave_the_caller_s_context_current) {
  const Stream other(1);
  const InContext there(other.context());
  const DeviceBuffer x = buffer_of(counted(1));
  Context context = twice().create_context();
  context.bind("x", view_of(x));
  context.run();
  cuda::CuContext current = nullptr;
  d.cuCtxGetCurrent(&current);
  EXPECT_EQ(current, other.context().get());
}

TEST(DeviceStreams, keep_memory_until_a_run_has_ended) {
  const Stream stream;
  DeviceBuffer small(twice(), kBytes), large(twice(), 2 * kBytes);
  small.write(counted(1).data(), kBytes);
  large.write(counted(1, 2 * kSize).data(), 2 * kBytes);
  std::vector<float> first(kSize), second(2 * kSize);
  {
    Context context = open_twice().create_context();
    context.bind("x", view_of(small));
    context.bind("y", view(first, {kRows, kColumns}));
    context.run_on(stream.get());
    context.bind("x", large.view(DType::f32, {2 * kRows, kColumns}));
    context.bind("y", view(second, {2 * kRows, kColumns}));
    context.run_on(stream.get());
  }
  stream.wait();
  for (const auto* y : {&first, &second})
    for (size_t row = 0; row < y->size(); row += kColumns) {
      float sum = 0;
      for (size_t i = row; i < row + kColumns; ++i) sum += (*y)[i];
      EXPECT_NEAR(sum, 2, 1e-4);
    }
}

TEST(DeviceStreams, of_several_threads_do_not_disturb_each_other) {
  const auto work = [&](float first, int device) {
    const Stream stream(device);
    const DeviceBuffer x = buffer_of(counted(first), device), y(twice(), kBytes, device);
    Context context = twice().create_context({.device = device});
    context.bind("x", view_of(x));
    context.bind("y", view_of(y));
    for (int run = 0; run < 5; ++run) context.run_on(stream.get());
    stream.wait();
    EXPECT_EQ(values_of(y), doubled(counted(first)));
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work, static_cast<float>(100 * i), i % 2);
  for (std::thread& t : threads) t.join();
}

/// A run between arrays that change from time to time, and what it was made of.
class Runs {
 public:
  Runs() : run_(std::make_shared<const DeviceProgram>(model().artifact)) {}
  void expect_right(const DeviceBuffer& x, const DeviceBuffer& y, float first) {
    const ArrayView in = view_of(x), out = view_of(y);
    run_.prepare({}, {}, 64, {&in, 1}, {&out, 1});
    run_.run({});
    EXPECT_EQ(values_of(y), doubled(counted(first)));
  }
  const DeviceRun::Counts& counts() const { return run_.counts(); }

 private:
  DeviceRun run_;
};

TEST(DeviceGraphs, are_made_when_addresses_come_again) {
  Runs runs;
  const DeviceBuffer x = buffer_of(counted(1)), z = buffer_of(counted(50)), y(twice(), kBytes);
  runs.expect_right(x, y, 1);
  EXPECT_EQ(runs.counts().direct, 1);
  EXPECT_EQ(runs.counts().captured, 0);
  runs.expect_right(x, y, 1);
  runs.expect_right(x, y, 1);
  EXPECT_EQ(runs.counts().captured, 1);
  EXPECT_EQ(runs.counts().replayed, 2);
  runs.expect_right(z, y, 50);  // other addresses: bypassed
  EXPECT_EQ(runs.counts().direct, 2);
  runs.expect_right(x, y, 1);  // those it knows: replayed
  EXPECT_EQ(runs.counts().replayed, 3);
  runs.expect_right(z, y, 50);
  EXPECT_EQ(runs.counts().captured, 2);
}

TEST(DeviceGraphs, are_as_many_as_the_limit_says) {
  Runs runs;
  const DeviceBuffer y(twice(), kBytes);
  std::vector<DeviceBuffer> inputs;
  for (size_t i = 0; i <= DeviceRun::kMostGraphs; ++i) inputs.push_back(buffer_of(counted(static_cast<float>(i))));
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i <= DeviceRun::kMostGraphs; ++i) runs.expect_right(inputs[i], y, static_cast<float>(i));
  EXPECT_EQ(runs.counts().captured, 0) << "each was forgotten before it came again";
  runs.expect_right(inputs.back(), y, static_cast<float>(DeviceRun::kMostGraphs));
  EXPECT_EQ(runs.counts().captured, 1);
}

/// What torch.cuda.graph does: the caller's stream is captured, and its graph replayed.
TEST(DeviceGraphs, of_the_caller_take_the_launches) {
  const Stream stream;
  DeviceBuffer x = buffer_of(counted(1)), y(twice(), kBytes);
  std::vector<float> host(kSize);
  Context context = open_twice().create_context(), fixed = twice().create_context();
  fixed.bind("x", view(host, {kRows, kColumns}));
  const InContext here(stream.context());
  const auto captured = [&](auto&& call) {
    d.check(d.cuStreamBeginCapture_v2(stream.cu(), 0), "begin");
    DeviceGraph graph(d);
    const Diagnostic found = refusal(call);
    d.check(d.cuStreamEndCapture(stream.cu(), graph.slot()), "end");
    DeviceGraphExec exec(d);
    d.check(d.cuGraphInstantiateWithFlags(exec.slot(), graph.get(), 0), "exec");
    return std::pair(found, std::move(exec));
  };
  fixed.run_on(stream.get());
  const Diagnostic in_host = captured([&] { fixed.run_on(stream.get()); }).first;
  EXPECT_EQ(in_host.code, "E0602");
  EXPECT_THAT(in_host.message, testing::HasSubstr("'x' lies in host memory"));
  context.bind("x", view_of(x));
  context.bind("y", view_of(y));
  const Diagnostic cold = captured([&] { context.run_on(stream.get()); }).first;
  EXPECT_THAT(cold.hint, testing::HasSubstr("run once on these shapes"));
  fixed.bind("x", view_of(x));
  fixed.bind("y", view_of(y));
  fixed.run_on(stream.get());
  const auto [fine, exec] = captured([&] { fixed.run_on(stream.get()); });
  EXPECT_EQ(fine.code, "");
  for (float first : {7.0f, 300.0f}) {
    x.write(counted(first).data(), kBytes);
    d.check(d.cuGraphLaunch(exec.get(), stream.cu()), "replay");
    stream.wait();
    EXPECT_EQ(values_of(y), doubled(counted(first)));
  }
}

}  // namespace
}  // namespace opfuse::test
