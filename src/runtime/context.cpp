// Context: binds arrays, resolves symbols, places buffers, runs launches phase by phase. Everything a run
// needs is resolved in prepare(), which runs only after bindings changed; run() itself allocates nothing.
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "base/fail.hpp"
#include "base/now_ns.hpp"
#include "runtime/array_overlaps.hpp"
#include "runtime/artifact_check.hpp"
#include "runtime/device_arrays.hpp"
#include "runtime/launch_call.hpp"
#include "runtime/require_features.hpp"
#include "runtime/routine_launch.hpp"
#include "runtime/state.hpp"

namespace opfuse {
namespace {

std::string names_of(const std::vector<ArtifactTensor>& tensors) {
  std::vector<std::string> names;
  for (const ArtifactTensor& t : tensors) names.push_back(fmt::format("{} : {}", t.name, t.type.text()));
  return fmt::format("{}", fmt::join(names, ", "));
}

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

/// Dimensions that are expressions over symbols have the value that those give them.
void check_sizes(const ArtifactTensor& tensor, const ArrayView& array, const SymbolValues& symbols) {
  for (size_t d = 0; d < array.shape.size(); ++d) {
    const Dim& dim = tensor.type.shape[d];
    if (const int64_t size = dim.evaluate(symbols); size != array.shape[d])
      throw fail(E::bad_binding, "'{}' is {}: dimension {} ({}) must be {}, but the bound array has {}", tensor.name,
                 tensor.type.text(), d, dim.text(), size, array.shape[d]);
  }
}

void run_part(void* context, int64_t part, int worker) {
  const LaunchCall& call = *static_cast<const LaunchCall*>(context);
  call.launch->entry(call.launch->pointers, call.launch->symbols, call.scratch[worker], part, call.launch->parts);
}

int64_t most_scratch(const ArtifactProgram& program) {
  int64_t bytes = 0;
  for (const ArtifactLaunch& launch : program.launches) bytes = std::max(bytes, launch.scratch_bytes);
  return bytes;
}

/// A size that no input gives: the caller, who cannot know it, binds an array with room enough.
bool is_found(const ArtifactProgram& program, const Shape& shape) {
  std::set<std::string> used;
  for (const Dim& dim : shape.dims) dim.collect_symbols(used);
  for (const ArtifactLaunch& launch : program.launches)
    for (const std::string& symbol : launch.routine.call.defines)
      if (used.contains(symbol)) return true;
  return false;
}

int64_t elements_of(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

size_t bytes_of(const TensorType& type, const SymbolValues& symbols) {
  size_t bytes = byte_size(type.dtype);
  for (int64_t size : type.shape.evaluate(symbols))
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes))
      throw fail(E::bad_binding, "{} is impossible with the bound sizes", type.text());
  return bytes;
}

}  // namespace

void ContextState::resolve_symbols() {
  const Artifact& a = executable->artifact;
  symbol_values.clear();
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    const ArrayView& array = bound_inputs[i];
    if (array.dtype == DType::unknown)
      throw fail(E::bad_binding, "input '{}' is not bound", a.inputs[i].name).hint("inputs: " + names_of(a.inputs));
    for (size_t d = 0; d < array.shape.size(); ++d) {
      const Dim& dim = a.inputs[i].type.shape[d];
      if (dim.op() != DimOp::symbol) continue;
      const auto [at, fresh] = symbol_values.emplace(dim.symbol_name(), array.shape[d]);
      if (!fresh && at->second != array.shape[d])
        throw fail(E::bad_binding, "dimension {} is {} in one input and {} in '{}'", at->first, at->second,
                   array.shape[d], a.inputs[i].name);
    }
  }
  for (size_t i = 0; i < a.inputs.size(); ++i) check_sizes(a.inputs[i], bound_inputs[i], symbol_values);
  program = &a.program_for(symbol_values);
  if (routines_in(*program) == 0) check(a.constraints, symbol_values);
  for (const DimConstraint& c : a.constraints)
    if (routines_in(*program) > 0 && is_known(c.relation.a, symbol_values) && is_known(c.relation.b, symbol_values))
      check({c}, symbol_values);
  number_symbols();
}

void ContextState::resolve_outputs() {
  const Artifact& a = executable->artifact;
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    ArrayView& bound = bound_outputs[i];
    if (!is_known(a.outputs[i].type.shape, symbol_values)) {  // a launch has yet to find its size
      bound = {a.outputs[i].type.dtype, nullptr, {}};
      continue;
    }
    const std::vector<int64_t> sizes = a.outputs[i].type.shape.evaluate(symbol_values);
    if (outputs_bound[i]) {
      bound = callers_outputs[i];
      if (bound.shape != sizes && elements_of(sizes) <= elements_of(bound.shape) &&
          is_found(*program, a.outputs[i].type.shape)) {
        bound.shape = sizes;
        continue;
      }
      if (bound.shape != sizes)
        throw fail(E::bad_binding, "output '{}' has shape [{}], but the bound array has shape [{}]", a.outputs[i].name,
                   fmt::join(sizes, ","), fmt::join(bound.shape, ","));
      continue;
    }
    const size_t bytes = bytes_of(a.outputs[i].type, symbol_values);
    if (device && options.device_results) {
      bound = {a.outputs[i].type.dtype, device->own_output(i, bytes), sizes, options.device};
      continue;
    }
    if (own_outputs[i].bytes() < bytes || !own_outputs[i].data())
      own_outputs[i] = Memory(std::max<size_t>(bytes, 1), options.allocator);
    bound = {a.outputs[i].type.dtype, own_outputs[i].data(), sizes};
  }
}

void ContextState::reserve_memory() {
  const Artifact& a = executable->artifact;
  arena_bytes = static_cast<size_t>(program->arena_bytes.evaluate(symbol_values));
  const bool all_known = is_known(program->intermediate_bytes, symbol_values);
  intermediate_bytes = all_known ? static_cast<size_t>(program->intermediate_bytes.evaluate(symbol_values)) : 0;
  if (device) return device->prepare(symbol_values, symbols, arena_bytes, bound_inputs, bound_outputs);
  if (arena.bytes() < arena_bytes) arena = Memory(arena_bytes, options.allocator);
  if (!scratch.empty() || executor->workers() == 0) return;
  int64_t scratch_bytes = most_scratch(a);
  for (const ArtifactVariant& variant : a.variants) scratch_bytes = std::max(scratch_bytes, most_scratch(variant));
  for (int worker = 0; worker < executor->workers(); ++worker) {
    scratch.emplace_back(static_cast<size_t>(scratch_bytes), options.allocator);
    scratch_pointers.push_back(scratch.back().data());
  }
}

/// Once for each set of sizes: rebinding arrays of the same shapes asks nothing again.
void ContextState::check_memory() {
  if (checked_sizes && *checked_sizes == symbol_values) return;
  const Artifact& a = executable->artifact;
  RunMemory memory{static_cast<int64_t>(arena_bytes), static_cast<int64_t>(a.constants.size()), {}, {}, {}};
  memory.later_arenas = later_bytes;
  for (const ArtifactTensor& t : a.inputs)
    memory.inputs.push_back(static_cast<int64_t>(bytes_of(t.type, symbol_values)));
  for (const ArtifactTensor& t : a.outputs)
    memory.outputs.push_back(
        is_known(t.type.shape, symbol_values) ? static_cast<int64_t>(bytes_of(t.type, symbol_values)) : kLater);
  check_ranges(*program, symbol_values, memory);
  checked_sizes = symbol_values;
}

void* ContextState::address_of(const ArtifactBuffer& buffer) const {
  const int64_t offset = buffer.offset.evaluate(symbol_values);
  const auto at = [&](const void* base) { return const_cast<char*>(static_cast<const char*>(base)) + offset; };
  switch (buffer.storage) {
    case Storage::input:
      return at(bound_inputs[static_cast<size_t>(buffer.root)].data);
    case Storage::output:
      return at(bound_outputs[static_cast<size_t>(buffer.root)].data);
    case Storage::constant:
      return at(executable->artifact.constants.data());
    case Storage::arena:
      return at(buffer.root > 0 ? later_arenas[static_cast<size_t>(buffer.root) - 1].data() : arena.data());
  }
  return nullptr;
}

/// How often a body runs; 0: its launches run once, for all parts of an open batch.
int64_t ContextState::times_of(const ArtifactBody& body) const {
  const int64_t times = body.times.evaluate(symbol_values);
  if (body.symbol.empty()) return std::max<int64_t>(times, 0);
  return times >= std::max<int64_t>(body.from, 2) ? times : 0;
}

/// The results of a routine have no place yet.
void ContextState::resolve_launch(size_t number, const SymbolValues& values, const std::vector<int64_t>& arguments) {
  const ArtifactLaunch& launch = program->launches[number];
  void* const* first = pointers.data() + pointers.size();
  const bool routine = launch.is_routine();
  for (size_t i = 0; i < launch.buffers.size(); ++i) {
    const int b = launch.buffers[i];
    const bool later = b < 0 || (routine && static_cast<int>(i) >= launch.routine.inputs);
    pointers.push_back(later ? nullptr : address_of(program->buffers[static_cast<size_t>(b)]));
  }
  if (launch.host || routine)
    ready.push_back({number, nullptr, first, nullptr, 1, &launch});
  else
    ready.push_back(
        {number, executable->entry(launch), first, arguments.data(), launch.parts.evaluate(values), nullptr});
}

/// Where the batch is open, the launches of a body get 1 for it.
void ContextState::resolve_launches(size_t from) {
  const ArtifactProgram& a = *program;
  if (from == 0) {
    launch_ns.assign(a.launches.size(), 0);
    if (device) return;
    size_t count = 0;
    for (const ArtifactLaunch& launch : a.launches) count += launch.buffers.size();
    pointers.clear();
    pointers.reserve(count);
    part_symbols.assign(a.bodies.size(), symbols);
  }
  ready.resize(std::min(ready.size(), from));
  size_t before = 0;
  for (size_t l = 0; l < from; ++l) before += a.launches[l].buffers.size();
  pointers.resize(before);
  size_t end = from;
  while (end < a.launches.size() && (end == from || !a.launches[end - 1].is_routine())) ++end;
  const auto resolve_to = [&](size_t to, const SymbolValues& values, const std::vector<int64_t>& arguments) {
    for (size_t l = ready.size(); l < to; ++l) resolve_launch(l, values, arguments);
  };
  for (size_t b = 0; b < a.bodies.size(); ++b) {
    const ArtifactBody& body = a.bodies[b];
    const auto first = static_cast<size_t>(body.first);
    if (first < from || first >= end) continue;
    resolve_to(first, symbol_values, symbols);
    SymbolValues one = symbol_values;
    if (!body.symbol.empty() && times_of(body) > 0) one[body.symbol] = 1;
    part_symbols[b] = symbols;
    for (size_t i = 0; i < a.symbols.size(); ++i)
      if (a.symbols[i] == body.symbol) part_symbols[b][i] = one.at(body.symbol);
    resolve_to(first + static_cast<size_t>(body.launches), one, part_symbols[b]);
  }
  resolve_to(end, symbol_values, symbols);
  resolve_bodies(from, end);
}

/// Launches of a body: where their pointers go from time to time.
void ContextState::resolve_bodies(size_t from, size_t end) {
  if (from == 0) pointer_steps.clear();
  if (device || program->bodies.empty()) return;
  pointer_steps.resize(pointers.capacity());
  for (const ArtifactBody& body : program->bodies) {
    if (static_cast<size_t>(body.first) < from || static_cast<size_t>(body.first) >= end) continue;
    const int64_t times = times_of(body);
    if (times == 0 && !body.symbol.empty()) continue;
    ReadyLaunch& begin = ready[static_cast<size_t>(body.first)];
    begin.times = times;
    begin.looped = static_cast<size_t>(body.launches);
    for (int64_t l = body.first; l < body.first + body.launches; ++l) {
      const ArtifactLaunch& launch = program->launches[static_cast<size_t>(l)];
      void* const* own = ready[static_cast<size_t>(l)].pointers;
      for (size_t i = 0; i < launch.steps.size(); ++i) {
        const int first = launch.steps[i].first;
        pointer_steps[static_cast<size_t>(own - pointers.data()) + i] = {
            static_cast<char*>(own[i]), launch.steps[i].bytes.evaluate(symbol_values), first >= 0,
            first >= 0 ? static_cast<char*>(own[static_cast<size_t>(first)]) : nullptr};
      }
    }
  }
}

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

void ContextState::prepare() {
  if (!dirty) return;
  resolve_symbols();
  resolve_outputs();
  check_overlaps(executable->artifact, bound_inputs, callers_outputs);
  reserve_memory();
  later_bytes.assign(static_cast<size_t>(routines_in(*program)), kLater);
  check_memory();
  resolve_launches(0);
  dirty = false;
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
