#include "device/fake_streams.hpp"

#include <algorithm>
#include <utility>

namespace opfuse::cuda {
namespace {

/// cuStreamCreate's flag for a stream that does not wait for the default one.
constexpr unsigned kNonBlocking = 1;
/// Handles of the default stream: the legacy one, and each thread's.
constexpr uintptr_t kLastDefaultStream = 2;
constexpr int kRelaxedCapture = 2;

}  // namespace

CuContext& fake_current_context() {
  thread_local CuContext context = nullptr;
  return context;
}
std::string& fake_failure() {
  thread_local std::string words;
  return words;
}
int& fake_captures() {
  thread_local int count = 0;
  return count;
}

FakeDevices& FakeDevices::get() {
  static FakeDevices& devices = *new FakeDevices;  // executables that are static may outlive any other
  return devices;
}

FakeDevices::FakeDevices() {
  for (int i = 0; i < kCount; ++i) {
    contexts[i].device = i;
    default_streams_[i].context = &contexts[i];
    default_streams_[i].blocking = true;
    all_streams_.push_back(&default_streams_[i]);
  }
}

CuResult FakeDevices::retain() {
  const std::lock_guard lock(mutex_);
  ++retained_;
  return kSuccess;
}

CuResult FakeDevices::release() {
  const std::lock_guard lock(mutex_);
  if (retained_ == 0) return kInvalidValue;
  --retained_;
  return kSuccess;
}

size_t FakeDevices::live() {
  const std::lock_guard lock(mutex_);
  return memory.live() + handles_.size() + retained_;
}

CuStream FakeDevices::stream(CuStream named) {
  if (reinterpret_cast<uintptr_t>(named) > kLastDefaultStream) return known(named) ? named : nullptr;
  const CuContext context = fake_current_context();
  return context ? &default_streams_[context->device] : nullptr;
}

CuResult FakeDevices::submit(CuStream named, FakeStep step) {
  const CuStream s = stream(named);
  if (!s) return named ? kInvalidHandle : kInvalidContext;
  const std::lock_guard lock(streams_);
  if (s->captured) {
    s->captured->steps.push_back(std::move(step));
    return kSuccess;
  }
  for (const CuStream other : all_streams_) {  // the default stream and those that block run one after the other
    const bool is_default = s == &default_streams_[s->context->device];
    const bool other_is = other == &default_streams_[other->context->device];
    if (other != s && other->context == s->context && other->blocking && s->blocking && (is_default || other_is))
      drain(other);
  }
  s->queue.push_back(std::move(step));
  return kSuccess;
}

void FakeDevices::run(CuStream s, const FakeMark* until) {
  const auto nothing = [] { return static_cast<CuResult>(kSuccess); };
  memory.open();
  while (!s->queue.empty() && !(until && until->reached)) {
    FakeStep step = std::move(s->queue.front());
    s->queue.erase(s->queue.begin());
    if (s->failed && !step.mark) continue;
    CuResult result = kSuccess;
    static uint64_t lot = 0;
    // Every other programmatic launch, by turns, begins before the one in front of it.
    const bool overlaps = step.launch && !s->queue.empty() && s->queue.front().programmatic && ++lot % 2 == 0;
    if (overlaps) {
      FakeStep next = std::move(s->queue.front());
      s->queue.erase(s->queue.begin());
      result = next.run([&] { return step.run(nothing); });
    } else {
      result = step.run(nothing);
    }
    if (result != kSuccess && !s->failed) s->failed = result, s->why = fake_failure();
  }
  memory.close();
}

CuResult FakeDevices::drain(CuStream s) {
  const std::lock_guard lock(streams_);
  run(s, nullptr);
  if (s->failed) fake_failure() = s->why;
  return std::exchange(s->failed, kSuccess);
}

void FakeDevices::drain(const FakeMark& mark) {
  const std::lock_guard lock(streams_);
  if (!mark.reached) run(mark.stream, &mark);
}

void FakeDevices::drain_all() {
  const std::lock_guard lock(streams_);
  for (size_t i = 0; i < all_streams_.size(); ++i) run(all_streams_[i], nullptr);
}

void FakeDevices::remember(CuStream s) {
  const std::lock_guard lock(streams_);
  all_streams_.push_back(s);
}

void FakeDevices::forget(CuStream s) {
  const std::lock_guard lock(streams_);
  run(s, nullptr);
  all_streams_.erase(std::remove(all_streams_.begin(), all_streams_.end(), s), all_streams_.end());
}

namespace {

FakeDevices& devices() { return FakeDevices::get(); }

CuResult create_stream(CuStream* s, unsigned flags) {
  if (!fake_current_context()) return kInvalidContext;
  auto made = std::make_unique<CuStreamHandle>();
  made->context = fake_current_context();
  made->blocking = flags != kNonBlocking;
  *s = devices().add(std::move(made));
  devices().remember(*s);
  return kSuccess;
}

CuResult destroy_stream(CuStream s) {
  if (!devices().known(s)) return kInvalidHandle;
  devices().forget(s);
  return devices().remove(s);
}

CuResult begin_capture(CuStream s, int mode) {
  if (!devices().known(s) || s->captured) return kInvalidValue;
  s->captured = std::make_unique<CuGraphHandle>();
  fake_captures() += mode != kRelaxedCapture;
  return kSuccess;
}

CuResult end_capture(CuStream s, CuGraph* graph) {
  if (!devices().known(s) || !s->captured) return kInvalidValue;
  fake_captures() = std::max(0, fake_captures() - 1);
  *graph = devices().add(std::move(s->captured));
  return kSuccess;
}

/// A captured launch of a graph is its steps.
CuResult launch_graph(CuGraphExec exec, CuStream s) {
  if (!devices().known(exec)) return kInvalidHandle;
  for (const FakeStep& step : *exec->steps)
    if (const CuResult r = devices().submit(s, step); r != kSuccess) return r;
  return kSuccess;
}

CuResult record(CuEvent e, CuStream named) {
  const CuStream s = devices().stream(named);
  if (!devices().known(e) || !s) return kInvalidHandle;
  auto mark = std::make_shared<FakeMark>();
  mark->stream = s;
  if (!s->captured) e->mark = mark;
  FakeStep step{[mark](const auto&) -> CuResult {
    mark->time = std::chrono::steady_clock::now();
    mark->reached = true;
    return kSuccess;
  }};
  step.mark = true;
  return devices().submit(named, std::move(step));
}

CuResult wait_event(CuStream s, CuEvent e, unsigned) {
  if (!devices().known(e)) return kInvalidHandle;
  if (!e->mark) return kSuccess;  // one that was never recorded
  return devices().submit(s, {[mark = e->mark](const auto&) -> CuResult {
                            devices().drain(*mark);
                            return kSuccess;
                          }});
}

CuResult elapsed(float* ms, CuEvent a, CuEvent b) {
  if (!devices().known(a) || !devices().known(b) || !a->mark || !b->mark) return kInvalidHandle;
  if (!a->mark->reached || !b->mark->reached) return kNotReady;
  *ms = std::chrono::duration<float, std::milli>(b->mark->time - a->mark->time).count();
  return kSuccess;
}

void add_events(Driver& d) {
  d.cuEventCreate = [](CuEvent* e, unsigned) -> CuResult {
    return *e = devices().add(std::make_unique<CuEventHandle>()), kSuccess;
  };
  d.cuEventDestroy_v2 = [](CuEvent e) { return devices().remove(e); };
  d.cuEventRecord = record;
  d.cuEventSynchronize = [](CuEvent e) -> CuResult {
    if (!devices().known(e)) return kInvalidHandle;
    if (e->mark) devices().drain(*e->mark);
    return kSuccess;
  };
  d.cuEventElapsedTime = elapsed;
}

}  // namespace

void add_fake_streams(Driver& d) {
  d.cuStreamCreate = create_stream;
  d.cuStreamDestroy_v2 = destroy_stream;
  d.cuStreamSynchronize = [](CuStream named) -> CuResult {
    const CuStream s = devices().stream(named);
    return !s ? kInvalidHandle : s->captured ? kCaptureUnsupported : devices().drain(s);
  };
  d.cuStreamGetCtx = [](CuStream named, CuContext* context) -> CuResult {
    const CuStream s = devices().stream(named);
    return s ? *context = s->context, kSuccess : kInvalidHandle;
  };
  d.cuStreamIsCapturing = [](CuStream named, int* status) -> CuResult {
    const CuStream s = devices().stream(named);
    return s ? *status = s->captured != nullptr, kSuccess : kInvalidHandle;
  };
  d.cuStreamWaitEvent = wait_event;
  d.cuStreamBeginCapture_v2 = begin_capture;
  d.cuStreamEndCapture = end_capture;
  d.cuGraphInstantiateWithFlags = [](CuGraphExec* exec, CuGraph graph, unsigned long long) -> CuResult {
    if (!devices().known(graph)) return kInvalidHandle;
    auto made = std::make_unique<CuGraphExecHandle>();
    made->steps = std::make_shared<const std::vector<FakeStep>>(graph->steps);
    return *exec = devices().add(std::move(made)), kSuccess;
  };
  d.cuGraphLaunch = launch_graph;
  d.cuGraphDestroy = [](CuGraph g) { return devices().remove(g); };
  d.cuGraphExecDestroy = [](CuGraphExec g) { return devices().remove(g); };
  add_events(d);
}

}  // namespace opfuse::cuda
