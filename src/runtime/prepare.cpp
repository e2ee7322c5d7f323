// What a run needs, resolved after bindings changed: symbols, outputs, memory, and the pointers of every launch.
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/fail.hpp"
#include "base/product_of.hpp"
#include "runtime/array_overlaps.hpp"
#include "runtime/artifact_check.hpp"
#include "runtime/routine_launch.hpp"
#include "runtime/state.hpp"

namespace opfuse {
namespace {

/// Dimensions that are expressions over symbols have the value that those give them.
void check_sizes(const ArtifactTensor& tensor, const ArrayView& array, const SymbolValues& symbols) {
  for (size_t d = 0; d < array.shape.size(); ++d) {
    const Dim& dim = tensor.type.shape[d];
    if (const int64_t size = dim.evaluate(symbols); size != array.shape[d])
      throw fail(E::bad_binding, "'{}' is {}: dimension {} ({}) must be {}, but the bound array has {}", tensor.name,
                 tensor.type.text(), d, dim.text(), size, array.shape[d]);
  }
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

size_t bytes_of(const TensorType& type, const SymbolValues& symbols) {
  size_t bytes = byte_size(type.dtype);
  for (int64_t size : type.shape.evaluate(symbols))
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes))
      throw fail(E::bad_binding, "{} is impossible with the bound sizes", type.text());
  return bytes;
}

}  // namespace

std::string names_of(const std::vector<ArtifactTensor>& tensors) {
  std::vector<std::string> names;
  for (const ArtifactTensor& t : tensors) names.push_back(fmt::format("{} : {}", t.name, t.type.text()));
  return fmt::format("{}", fmt::join(names, ", "));
}

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
      if (bound.shape != sizes && product_of(sizes) <= product_of(bound.shape) &&
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

}  // namespace opfuse
