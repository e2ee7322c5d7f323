// Running and timing through the public API alone.
#include "session.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <set>
#include <thread>

#include "console.hpp"
#include "interrupt.hpp"
#include "runtime/artifact.hpp"

namespace opfuse::cli {

ArrayView view_of(const Tensor& tensor) { return {tensor.dtype(), const_cast<void*>(tensor.data()), tensor.sizes()}; }

Tensor tensor_of(const ArrayView& view) {
  Tensor tensor(view.dtype, view.shape);
  if (tensor.bytes() > 0) std::memcpy(tensor.mutable_data(), view.data, tensor.bytes());
  return tensor;
}

/// The inputs give every symbol of it a value; sizes that the run finds have none yet.
static bool is_given(const Dim& dim, const SymbolValues& sizes) {
  std::set<std::string> symbols;
  dim.collect_symbols(symbols);
  return std::ranges::all_of(symbols, [&](const std::string& s) { return sizes.contains(s); });
}

Session::Session(const Executable& executable, const ModelInputs& inputs, ContextOptions options, bool resident)
    : inputs_(inputs.tensors), context_(executable.create_context(std::move(options))) {
  const Artifact& artifact = executable.artifact();
  const auto on_device = [&](std::vector<DeviceBuffer>& buffers, const Tensor& t) {
    buffers.emplace_back(executable, t.bytes(), context_.device());
    buffers.back().write(t.data(), t.bytes());
    return buffers.back().view(t.dtype(), t.sizes());
  };
  for (size_t i = 0; i < artifact.inputs.size(); ++i)
    context_.bind(artifact.inputs[i].name, resident ? on_device(resident_inputs_, inputs_[i]) : view_of(inputs_[i]));
  for (const DimConstraint& c : artifact.constraints)  // sizes that the model refuses need not give its results any
    if (is_given(c.relation.a, inputs.symbols) && is_given(c.relation.b, inputs.symbols)) check({c}, inputs.symbols);
  for (const ArtifactTensor& output : artifact.outputs) {
    output_names_.push_back(output.name);
    const auto is_input = [&](const ArtifactTensor& input) { return input.name == output.name; };  // binding takes it
    if (std::ranges::any_of(artifact.inputs, is_input) ||
        !std::ranges::all_of(output.type.shape.dims, [&](const Dim& d) { return is_given(d, inputs.symbols); })) {
      outputs_.emplace_back();  // the context has memory for it, once its size is found
      continue;
    }
    outputs_.emplace_back(output.type.dtype, output.type.shape.evaluate(inputs.symbols));
    if (resident) resident_outputs_.push_back(outputs_.size() - 1);
    context_.bind(output.name, resident ? on_device(resident_, outputs_.back()) : view_of(outputs_.back()));
  }
}

std::vector<Tensor> Session::outputs() const {
  std::vector<Tensor> copies;
  for (size_t i = 0; i < outputs_.size(); ++i)
    copies.push_back(outputs_[i].dtype() == DType::unknown ? tensor_of(context_.output(output_names_[i]))
                                                           : outputs_[i].clone());
  for (size_t i = 0; i < resident_.size(); ++i) {
    Tensor& copy = copies[resident_outputs_[i]];
    resident_[i].read(copy.mutable_data(), copy.bytes());
  }
  return copies;
}

std::vector<std::vector<double>> measure(const std::vector<Context*>& contexts, const MeasureSettings& settings,
                                         const std::function<void(size_t)>& after_run) {
  const int64_t start = now_ns();  // contexts have turns of the same length, so all together take
  const double whole = (settings.warmup_seconds + settings.duration_seconds) * static_cast<double>(contexts.size());
  const auto stop = [&] {
    show_progress("measuring", static_cast<size_t>((now_ns() - start) / 1'000'000), static_cast<size_t>(whole * 1e3));
    return interrupted();
  };
  const auto samples = measure_in_turns(contexts, settings, stop, after_run);
  finish_progress();
  return samples;
}

double measure_throughput(std::vector<Session>& sessions, const MeasureSettings& settings) {
  std::atomic<int64_t> runs{0};
  std::atomic<int> ready{0};
  std::atomic<bool> go{false}, stop{false};
  std::exception_ptr failure;
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
  std::vector<std::thread> threads;
  for (Session& session : sessions)
    threads.emplace_back([&] {
      try {
        session.context().run();
        ready.fetch_add(1);
        while (!go.load()) std::this_thread::yield();
        while (!stop.load()) {
          session.context().run();
          runs.fetch_add(1);
        }
      } catch (...) {
        if (!failed.test_and_set()) failure = std::current_exception();
        ready.fetch_add(1);
        stop = true;
      }
    });
  while (ready.load() < static_cast<int>(sessions.size())) std::this_thread::yield();
  const int64_t start = now_ns(), length = static_cast<int64_t>(settings.duration_seconds * 1e9);
  go = true;
  while (!stop.load() && !interrupted() && now_ns() - start < length) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    show_progress("measuring", static_cast<size_t>(now_ns() - start), static_cast<size_t>(length));
  }
  finish_progress();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  const double seconds = static_cast<double>(now_ns() - start) * 1e-9;
  if (failure) std::rethrow_exception(failure);
  return static_cast<double>(runs.load()) / seconds;
}

WorkTotal total_work(const Context& context) {
  WorkTotal total;
  for (const LaunchInfo& launch : context.launches()) {
    total.flops += launch.flops;
    total.bytes += launch.bytes_read + launch.bytes_written;
    ++total.launches;
  }
  return total;
}

}  // namespace opfuse::cli
