// A run's launches depend on addresses, so their graph does. Addresses that come for the first time are launched one by
// one; when they come again they are captured, and from then on replayed.
#include "runtime/device_run.hpp"

#include <algorithm>

#include "base/fail.hpp"

namespace opfuse {

using cuda::CuPointer;
using cuda::CuStream;

namespace {

constexpr unsigned kNonBlockingStream = 1, kEventWithoutTime = 2;
constexpr int kCaptureOfThisThread = 1, kCaptureActive = 1;

size_t bytes_of(const ArrayView& array) {
  size_t bytes = byte_size(array.dtype);
  for (int64_t size : array.shape) bytes *= static_cast<size_t>(size);
  return bytes;
}

}  // namespace

DeviceRun::DeviceRun(std::shared_ptr<const DeviceProgram> program)
    : program_(std::move(program)), stream_(program_->driver()), last_(program_->driver()) {
  const InContext here(program_->context());
  const cuda::Driver& d = program_->driver();
  const Artifact& a = program_->artifact();
  inputs_.resize(a.inputs.size());
  outputs_.resize(a.outputs.size());
  results_.resize(a.outputs.size());
  d.check(d.cuStreamCreate(stream_.slot(), kNonBlockingStream), "making a stream");
  try {
    d.check(d.cuEventCreate(last_.slot(), kEventWithoutTime), "making an event");
  } catch (...) {
    stream_.reset();
    throw;
  }
}

DeviceRun::~DeviceRun() {
  const InContext here(program_->context());
  if (under_way_) program_->driver().cuEventSynchronize(last_.get());
  bound_.clear();
  events_.clear();
  arena_ = DeviceMemory();
  for (auto* slots : {&inputs_, &outputs_}) slots->clear();
  results_.clear();
  last_.reset();
  stream_.reset();
}

// ---- memory -----------------------------------------------------------------------------------------------------

void DeviceRun::prepare(const SymbolValues& symbols, const std::vector<int64_t>& symbol_list, size_t arena_bytes,
                        std::span<const ArrayView> inputs, std::span<const ArrayView> outputs) {
  symbols_ = symbols;
  symbol_list_ = symbol_list;
  arena_bytes_ = arena_bytes;
  const auto take = [](std::vector<Slot>& slots, std::span<const ArrayView> arrays) {
    for (size_t i = 0; i < slots.size(); ++i) slots[i].array = arrays[i], slots[i].bytes = bytes_of(arrays[i]);
  };
  take(inputs_, inputs);
  take(outputs_, outputs);
}

void* DeviceRun::own_output(size_t output, size_t bytes) {
  const InContext here(program_->context());
  replace(results_[output], bytes);
  return reinterpret_cast<void*>(static_cast<uintptr_t>(results_[output].address()));
}

void DeviceRun::wait() {
  const InContext here(program_->context());
  wait_for_last();
}

void DeviceRun::wait_for_last() {
  if (!under_way_) return;
  under_way_ = false;
  program_->driver().check(program_->driver().cuEventSynchronize(last_.get()), "waiting for the last run");
}

/// The last run may still use it, and so may graphs.
void DeviceRun::replace(DeviceMemory& memory, size_t bytes) {
  if (memory.address() && memory.bytes() >= bytes) return;
  if (captured_by_caller_)
    throw fail(E::bad_binding, "these shapes need more memory, and a captured graph holds what the context has")
        .hint("capture the largest shapes first, or make another context for them");
  wait_for_last();
  memory = DeviceMemory(program_->driver(), bytes);
}

void DeviceRun::reserve(bool capturing) {
  const auto lacks = [](const DeviceMemory& memory, size_t bytes) {
    return !memory.address() || memory.bytes() < bytes;
  };
  if (capturing && lacks(arena_, arena_bytes_))
    throw fail(E::bad_binding, "the stream is being captured, and the context has no memory yet for these shapes")
        .hint("run once on these shapes before the capture begins");
  replace(arena_, arena_bytes_);
  for (auto* slots : {&inputs_, &outputs_})
    for (Slot& slot : *slots)
      if (!slot.resident()) replace(slot.own, slot.bytes);
}

CuPointer DeviceRun::address_of(const ArtifactBuffer& buffer) const {
  const auto offset = static_cast<CuPointer>(buffer.offset.evaluate(symbols_));
  switch (buffer.storage) {
    case Storage::input:
      return inputs_[static_cast<size_t>(buffer.root)].address() + offset;
    case Storage::output:
      return outputs_[static_cast<size_t>(buffer.root)].address() + offset;
    case Storage::constant:
      return program_->constants() + offset;
    case Storage::arena:
      return arena_.address() + offset;
  }
  return 0;
}

/// Launches at the addresses and sizes of this run: those of an earlier one, or made now.
DeviceRun::Bound& DeviceRun::bind_addresses() {
  std::vector<CuPointer> key = {arena_.address()};
  for (const auto* slots : {&inputs_, &outputs_})
    for (const Slot& slot : *slots) key.push_back(slot.address());
  for (int64_t size : symbol_list_) key.push_back(static_cast<CuPointer>(size));
  const auto known = std::find_if(bound_.begin(), bound_.end(), [&](const Bound& b) { return b.key == key; });
  if (known != bound_.end()) {
    bound_.splice(bound_.begin(), bound_, known);
    return bound_.front();
  }
  if (bound_.size() == kMostGraphs) {
    wait_for_last();
    bound_.pop_back();
  }
  Bound made(program_->driver());
  made.key = std::move(key);
  made.symbols = symbols_;
  made.symbol_list = symbol_list_;
  const Artifact& a = program_->artifact();
  for (const ArtifactLaunch& launch : a.launches) {
    std::vector<CuPointer>& pointers = made.pointers.emplace_back();
    for (int b : launch.buffers) pointers.push_back(address_of(a.buffers[static_cast<size_t>(b)]));
    made.maps.push_back(program_->maps(made.maps.size(), pointers, symbols_));
  }
  bound_.push_front(std::move(made));
  return bound_.front();
}

// ---- launches -----------------------------------------------------------------------------------------------------

void DeviceRun::launch_each(const Bound& b, CuStream stream) const {
  for (size_t i = 0; i < b.pointers.size(); ++i)
    program_->launch(i, b.pointers[i], b.maps[i], b.symbols, b.symbol_list, stream);
}

void DeviceRun::capture(Bound& b) {
  const cuda::Driver& d = program_->driver();
  d.check(d.cuStreamBeginCapture_v2(stream_.get(), kCaptureOfThisThread), "capturing the launches");
  DeviceGraph graph(d);
  try {
    launch_each(b, stream_.get());
  } catch (...) {
    d.cuStreamEndCapture(stream_.get(), graph.slot());  // or the stream takes nothing more
    throw;
  }
  d.check(d.cuStreamEndCapture(stream_.get(), graph.slot()), "capturing the launches");
  d.check(d.cuGraphInstantiateWithFlags(b.graph.slot(), graph.get(), 0), "making the graph of the launches");
  ++counts_.captured;
}

void DeviceRun::launch_all(Bound& b, CuStream stream, bool capturing) {
  if (b.pointers.empty()) return;
  if (capturing || !b.ran) {
    launch_each(b, stream);
    ++counts_.direct;
    b.ran = b.ran || !capturing;
    return;
  }
  const cuda::Driver& d = program_->driver();
  if (!b.graph.get()) capture(b);
  d.check(d.cuGraphLaunch(b.graph.get(), stream), "running the model");
  ++counts_.replayed;
}

void DeviceRun::time_each(const Bound& b, const How& how, CuStream stream) {
  const cuda::Driver& d = program_->driver();
  const size_t count = b.pointers.size();
  while (how.launch_ns && events_.size() < count + 1) {
    events_.emplace_back(d);
    d.check(d.cuEventCreate(events_.back().slot(), 0), "making an event");
  }
  const auto record = [&](size_t i) {
    if (how.launch_ns) d.check(d.cuEventRecord(events_[i].get(), stream), "recording an event");
  };
  record(0);
  for (size_t i = 0; i < count; ++i) {
    if (how.progress && !(*how.progress)(i, count))
      throw fail(E::cancelled, "the run was cancelled before launch {} of {}", i + 1, count);
    program_->launch(i, b.pointers[i], b.maps[i], b.symbols, b.symbol_list, stream);
    record(i + 1);
    if (how.progress) d.check(d.cuStreamSynchronize(stream), "running " + program_->artifact().launches[i].name);
  }
  d.check(d.cuStreamSynchronize(stream), "running the model");
  for (size_t i = 0; how.launch_ns && i < count; ++i) {
    float milliseconds = 0;
    d.check(d.cuEventElapsedTime(&milliseconds, events_[i].get(), events_[i + 1].get()),
            "reading the time of a launch");
    (*how.launch_ns)[i] = static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6);
  }
}

// ---- runs -----------------------------------------------------------------------------------------------------------

void DeviceRun::copy_in(CuStream stream) {
  const cuda::Driver& d = program_->driver();
  for (const Slot& slot : inputs_)
    if (slot.bytes && !slot.resident())
      d.check(d.cuMemcpyHtoDAsync_v2(slot.own.address(), slot.array.data, slot.bytes, stream), "copying an input");
}

void DeviceRun::copy_out(CuStream stream) {
  const cuda::Driver& d = program_->driver();
  for (const Slot& slot : outputs_)
    if (slot.bytes && !slot.resident())
      d.check(d.cuMemcpyDtoHAsync_v2(slot.array.data, slot.own.address(), slot.bytes, stream), "copying an output");
}

/// Whether a stream of the caller's is being captured; throws E::bad_binding for one of another device.
bool DeviceRun::is_capturing(CuStream stream) const {
  const cuda::Driver& d = program_->driver();
  cuda::CuContext context = nullptr;
  if (const cuda::CuResult result = d.cuStreamGetCtx(stream, &context); result != 0)
    throw fail(E::bad_binding, "run_on: the stream is none of the driver's: {}", d.words(result))
        .hint("pass a CUstream or cudaStream_t that has not been destroyed (torch: stream.cuda_stream)");
  if (context != program_->context().get())
    throw fail(E::bad_binding,
               "run_on: the stream belongs to another context than that of device {}, which this runs on",
               program_->device())
        .hint(
            "pass a stream of that device, made in its primary context (as the CUDA runtime and torch make them), or "
            "create the context with the stream's device");
  int status = 0;
  d.check(d.cuStreamIsCapturing(stream, &status), "asking for the state of the stream");
  return status == kCaptureActive;
}

void DeviceRun::check_capturing(const How& how) const {
  if (how.launch_ns || how.progress)
    throw fail(E::bad_binding, "the stream is being captured, and a run that is timed or watched must be waited for")
        .hint("create the context without profile and progress");
  const Artifact& a = program_->artifact();
  const auto check = [](const std::vector<Slot>& slots, const std::vector<ArtifactTensor>& tensors) {
    for (size_t i = 0; i < slots.size(); ++i)
      if (slots[i].bytes && !slots[i].resident())
        throw fail(E::bad_binding, "the stream is being captured, and '{}' lies in host memory", tensors[i].name)
            .hint("bind arrays of the device for all inputs and outputs, or set ContextOptions::device_results");
  };
  check(inputs_, a.inputs);
  check(outputs_, a.outputs);
}

void DeviceRun::give(const How& how, CuStream stream, bool capturing) {
  const cuda::Driver& d = program_->driver();
  if (under_way_ && !capturing)
    d.check(d.cuStreamWaitEvent(stream, last_.get(), 0), "waiting for the last run");  // they share the arena
  Bound& b = bind_addresses();
  copy_in(stream);
  if (how.launch_ns || how.progress)
    time_each(b, how, stream);
  else
    launch_all(b, stream, capturing);
  copy_out(stream);
}

void DeviceRun::run(const How& how) {
  const InContext here(program_->context());
  const cuda::Driver& d = program_->driver();
  const CuStream stream = how.on_stream ? how.stream : stream_.get();
  const bool capturing = how.on_stream && is_capturing(stream);
  if (capturing) check_capturing(how);
  reserve(capturing);
  try {
    give(how, stream, capturing);
  } catch (...) {
    if (!capturing) d.cuStreamSynchronize(stream);  // what was given uses the context's memory
    throw;
  }
  captured_by_caller_ = captured_by_caller_ || capturing;
  if (capturing) return;
  under_way_ = how.on_stream;
  if (how.on_stream)
    d.check(d.cuEventRecord(last_.get(), stream), "recording the end of the run");
  else
    d.check(d.cuStreamSynchronize(stream), "running the model");
}

}  // namespace opfuse
