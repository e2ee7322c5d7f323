// Context: binds arrays and runs launches one after the other. Everything a run needs is resolved in prepare()
// (prepare.cpp), which runs only after bindings changed; run() itself allocates nothing.
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "base/fail.hpp"
#include "base/now_ns.hpp"
#include "runtime/artifact_check.hpp"
#include "runtime/device_arrays.hpp"
#include "runtime/launch_call.hpp"
#include "runtime/require_features.hpp"
#include "runtime/routine_launch.hpp"
#include "runtime/state.hpp"

namespace opfuse {
namespace {

int index_of(const std::vector<ArtifactTensor>& tensors, const std::string& name) {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].name == name) return static_cast<int>(i);
  return -1;
}

void check_array(const ArtifactTensor& tensor, const ArrayView& array) {
  const Shape& shape = tensor.type.shape;
  if (array.dtype != tensor.type.dtype)
    throw fail(E::bad_binding, "'{}' is {}, but the bound array has elements of type {}", tensor.name,
               tensor.type.text(), name_of(array.dtype))
        .hint(fmt::format("convert the array to {} (NumPy: astype)", name_of(tensor.type.dtype)));
  bool fits = array.shape.size() == shape.rank();
  for (size_t i = 0; fits && i < shape.rank(); ++i)
    fits = array.shape[i] >= 0 && (!shape[i].is_constant() || shape[i].value() == array.shape[i]);
  if (!fits)
    throw fail(E::bad_binding, "'{}' is {}, but the bound array has shape [{}]", tensor.name, tensor.type.text(),
               fmt::join(array.shape, ","));
  if (!array.data && std::find(array.shape.begin(), array.shape.end(), 0) == array.shape.end())
    throw fail(E::bad_binding, "the array bound to '{}' has no data", tensor.name);
}

/// An input that was fixed when compiling may be bound to that value only.
void check_fixed(const std::string& name, const Tensor& value, const ArrayView& array) {
  if (array.device != kHostMemory)
    throw fail(E::bad_binding, "'{}' was fixed when the model was compiled, and the array bound to it lies on a device",
               name)
        .hint("bind that value in host memory, or nothing");
  const bool same = array.dtype == value.dtype() && array.shape == value.sizes() &&
                    (value.bytes() == 0 || (array.data && std::memcmp(array.data, value.data(), value.bytes()) == 0));
  if (!same)
    throw fail(E::bad_binding, "'{}' was fixed when the model was compiled, to a {} that differs from what is bound",
               name, value.type().text())
        .hint("bind that value or nothing; for another one compile the model again");
}

void run_part(void* context, int64_t part, int worker) {
  const LaunchCall& call = *static_cast<const LaunchCall*>(context);
  call.launch->entry(call.launch->pointers, call.launch->symbols, call.scratch[worker], part, call.launch->parts);
}

}  // namespace

void ContextState::run_ready(const ReadyLaunch& launch) const {
  if (launch.host) return launch.host->host({launch.pointers, launch.host->buffers.size()}, symbol_values);
  LaunchCall call{&launch, scratch_pointers.data()};
  executor->run(launch.parts, run_part, &call);
}

size_t ContextState::launches_to_run() const {
  size_t count = program->launches.size() - ready.size();
  for (size_t i = 0; i < ready.size(); i += std::max<size_t>(ready[i].looped, 1))
    count += ready[i].looped > 0 ? ready[i].looped * static_cast<size_t>(ready[i].times) : 1;
  return count;
}

void ContextState::run_body(size_t first, const std::function<void()>& begin, const std::function<void(size_t)>& ran) {
  const int64_t times = ready[first].times;
  const size_t end = first + ready[first].looped;
  for (int64_t step = 0; step < times; ++step)
    for (size_t i = first; i < end; ++i) {
      begin();
      const auto own = static_cast<size_t>(ready[i].pointers - pointers.data());
      const size_t count = program->launches[ready[i].launch].steps.size();
      for (size_t p = own; p < own + count; ++p) {
        const PointerStep& s = pointer_steps[p];
        pointers[p] = s.before && step == 0 ? s.first : s.at + (s.before ? step - 1 : step) * s.bytes;
      }
      run_ready(ready[i]);
      ran(i);
    }
}

Context Executable::create_context(ContextOptions options) const {
  const Artifact& artifact = this->artifact();
  require_features(artifact);  // one that was compiled in this process may be for another machine
  auto state = std::make_unique<ContextState>();
  state->executable = state_;
  if (artifact.on_device()) state->device = std::make_unique<DeviceRun>(state_->device(options.device));
  if (options.executor) {
    state->executor = options.executor;
  } else {
    if (options.threads < 0) throw fail(E::bad_option, "threads must be positive, got {}", options.threads);
    const int threads = state->device ? 1 : default_threads();
    state->own_executor = make_thread_pool(options.threads ? options.threads : threads);
    state->executor = state->own_executor.get();
  }
  state->options = std::move(options);
  state->bound_inputs.resize(artifact.inputs.size());
  state->bound_outputs.resize(artifact.outputs.size());
  state->own_outputs.resize(artifact.outputs.size());
  state->outputs_bound.resize(artifact.outputs.size());
  state->callers_outputs.resize(artifact.outputs.size());
  return Context(std::move(state));
}

Context::Context(std::unique_ptr<ContextState> state) : state_(std::move(state)) {}
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;
Context::~Context() = default;

static ContextState& still_there(const std::unique_ptr<ContextState>& state) {
  if (!state) throw fail(E::bad_binding, "this context was moved from").hint("use the one that it was moved to");
  return *state;
}

void Context::bind(const std::string& name, const ArrayView& array) {
  ContextState& s = still_there(state_);
  const Artifact& a = s.executable->artifact;
  const int input = index_of(a.inputs, name), output = index_of(a.outputs, name);
  for (const auto& [fixed, value] : a.fixed_inputs)
    if (fixed == name) return check_fixed(name, value, array);
  if (input < 0 && output < 0)
    throw fail(E::bad_binding, "the model has no input or output '{}'", name)
        .hint(fmt::format("inputs: {}; outputs: {}", names_of(a.inputs), names_of(a.outputs)));
  const bool is_input = input >= 0;
  const size_t at = static_cast<size_t>(is_input ? input : output);
  check_array(is_input ? a.inputs[at] : a.outputs[at], array);
  if (s.device)
    check_place(s.device->program(), name, array);
  else
    check_host_place(name, array);
  if (!is_input) s.outputs_bound[at] = true, s.callers_outputs[at] = array;
  (is_input ? s.bound_inputs : s.bound_outputs)[at] = array;
  s.dirty = true;
}

void Context::run() {
  ContextState& s = still_there(state_);
  s.prepare();
  if (s.options.profile) std::fill(s.launch_ns.begin(), s.launch_ns.end(), 0);
  const int64_t start = now_ns();
  if (s.device) {
    s.run_device({});
    s.total_ns = now_ns() - start;
    return;
  }
  int64_t last = start;
  const auto ran = [&](size_t i) {
    if (!s.options.profile) return;
    const int64_t now = now_ns();
    s.launch_ns[s.ready[i].launch] += now - last;
    last = now;
  };
  size_t all = s.options.progress ? s.launches_to_run() : 0;
  size_t begun = 0;
  const auto begin = [&] {
    if (s.options.progress && !s.options.progress(begun++, all))
      throw fail(E::cancelled, "the run was cancelled before launch {} of {}", begun, all);
  };
  for (size_t i = 0; i < s.program->launches.size(); ++i) {
    if (const size_t looped = s.ready[i].looped; looped > 0) {
      s.run_body(i, begin, ran);
      i += looped - 1;
      continue;
    }
    begin();
    if (s.program->launches[i].is_routine()) {
      s.run_routine_at(i);
      if (s.options.progress) all = s.launches_to_run();
    } else {
      s.run_ready(s.ready[i]);
    }
    ran(i);
  }
  s.total_ns = now_ns() - start;
}

void ContextState::run_device(DeviceRun::How how) {
  if (options.profile) how.launch_ns = &launch_ns;
  if (options.progress) how.progress = &options.progress;
  device->run(how);
}

void Context::run_on(void* stream) {
  ContextState& s = still_there(state_);
  if (!s.device)
    throw fail(E::bad_binding, "run_on is for executables of a GPU, and this one is for {}",
               s.executable->artifact.target)
        .hint("call run(), or compile with --target cuda:sm_90");
  s.prepare();
  const int64_t start = now_ns();
  s.run_device({.on_stream = true, .stream = static_cast<cuda::CuStream>(stream)});
  s.total_ns = now_ns() - start;
}

void Context::wait() {
  const ContextState& s = still_there(state_);
  if (s.device) s.device->wait();
}

int Context::device() const {
  const ContextState& s = still_there(state_);
  return s.device ? s.device->program().device() : kHostMemory;
}

ArrayView Context::output(const std::string& name) const {
  const ContextState& s = still_there(state_);
  const std::vector<ArtifactTensor>& outputs = s.executable->artifact.outputs;
  const int at = index_of(outputs, name);
  if (at < 0) throw fail(E::bad_binding, "the model has no output '{}'", name).hint("outputs: " + names_of(outputs));
  return s.bound_outputs[static_cast<size_t>(at)];
}

std::optional<std::vector<int64_t>> Context::known_output_shape(const std::string& name) const {
  ContextState& s = still_there(state_);
  const std::vector<ArtifactTensor>& outputs = s.executable->artifact.outputs;
  const int at = index_of(outputs, name);
  if (at < 0) throw fail(E::bad_binding, "the model has no output '{}'", name).hint("outputs: " + names_of(outputs));
  if (s.dirty) s.resolve_symbols();
  const Shape& shape = outputs[static_cast<size_t>(at)].type.shape;
  if (!is_known(shape, s.symbol_values)) return std::nullopt;
  return shape.evaluate(s.symbol_values);
}

std::vector<int64_t> Context::output_shape(const std::string& name) const {
  if (auto shape = known_output_shape(name)) return *std::move(shape);
  throw fail(E::missing_dimension, "the shape of output '{}' is known when the model has run", name)
      .hint("bind nothing and ask after the run, or bind an array that has room for all there may be");
}

int Context::threads() const { return still_there(state_).executor->workers(); }
size_t Context::arena_bytes() const {
  const ContextState& s = still_there(state_);
  size_t bytes = s.arena_bytes;
  for (const int64_t later : s.later_bytes)  // of sizes that the last run found
    if (later != kLater) bytes += static_cast<size_t>(later);
  return bytes;
}

size_t Context::intermediate_bytes() const {
  const ContextState& s = still_there(state_);
  if (s.intermediate_bytes > 0 || !s.program || !is_known(s.program->intermediate_bytes, s.symbol_values))
    return s.intermediate_bytes;
  return static_cast<size_t>(s.program->intermediate_bytes.evaluate(s.symbol_values));
}

std::vector<LaunchInfo> Context::launches() const {
  ContextState& s = still_there(state_);
  s.prepare();
  std::vector<LaunchInfo> infos;
  for (const ArtifactLaunch& l : s.program->launches) {
    const auto whole = [&](const Dim& dim) {  // 0: before the first run, of sizes that it finds
      return is_known(dim, s.symbol_values) ? dim.evaluate(s.symbol_values) : 0;
    };
    const auto value = [&](const Dim& dim) { return static_cast<double>(whole(dim)); };
    infos.push_back({l.name, l.symbol, l.pattern, l.schedule, l.sources, value(l.flops), value(l.bytes_read),
                     value(l.bytes_written), whole(l.parts), l.products});
  }
  return infos;
}

std::map<std::string, int64_t> Context::variant() const {
  ContextState& s = still_there(state_);
  if (s.dirty) s.resolve_symbols();
  for (const ArtifactVariant& variant : s.executable->artifact.variants)
    if (&variant == s.program) return variant.when;
  return {};
}

const std::vector<int64_t>& Context::launch_nanoseconds() const { return still_there(state_).launch_ns; }
int64_t Context::total_nanoseconds() const { return still_there(state_).total_ns; }

}  // namespace opfuse
