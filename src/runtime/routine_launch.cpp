// A run with launches of routines goes in segments: what one of them finds gives symbols their values, so outputs,
// the arena of its level and the launches behind it are resolved there, as far as the next one. Found again, nothing
// changes.
#include "runtime/routine_launch.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/fail.hpp"
#include "runtime/placed_value.hpp"
#include "runtime/state.hpp"

namespace opfuse {

bool is_known(const Dim& dim, const SymbolValues& symbols) {
  std::set<std::string> names;
  dim.collect_symbols(names);
  for (const std::string& name : names)
    if (!symbols.contains(name)) return false;
  return true;
}

bool is_known(const Shape& shape, const SymbolValues& symbols) {
  for (const Dim& dim : shape.dims)
    if (!is_known(dim, symbols)) return false;
  return true;
}

int routines_in(const ArtifactProgram& program) {
  return static_cast<int>(std::ranges::count_if(program.launches, [](const auto& l) { return l.is_routine(); }));
}

RoutineResult run_routine(const RoutineLaunch& launch, std::span<void* const> pointers, const SymbolValues& symbols) {
  const auto count = static_cast<size_t>(launch.inputs);
  std::vector<Tensor> loaded(count);
  std::vector<const Tensor*> operands(count, nullptr);
  for (size_t i = 0; i < count; ++i) {
    const PlacedValue& value = launch.values[i];
    if (value.type.dtype == DType::unknown) continue;
    const bool dense = is_plain(value, symbols);
    loaded[i] = dense ? Tensor::wrap(value.type.dtype, value.type.shape.evaluate(symbols), pointers[i], nullptr)
                      : access_of(value, symbols).load(pointers[i]);
    operands[i] = &loaded[i];
  }
  RoutineResult found = run_routine(launch.call, operands);
  for (size_t i = 0; i < found.sizes.size(); ++i)
    if (found.sizes[i] < 0)
      throw fail(E::bad_dimension, "the size {} is {} in this run", launch.call.defines[i], found.sizes[i])
          .hint("sizes that a model computes must not be negative: axes counted from the end are not followed");
  return found;
}

void store_results(const RoutineLaunch& launch, const RoutineResult& found, std::span<void* const> pointers,
                   const SymbolValues& symbols) {
  for (size_t i = static_cast<size_t>(launch.inputs); i < launch.values.size(); ++i) {
    const PlacedValue& value = launch.values[i];
    const size_t r = i - static_cast<size_t>(launch.inputs);
    if (value.type.dtype == DType::unknown || !pointers[i]) continue;
    if (r >= found.results.size() || found.results[r].dtype() != value.type.dtype ||
        found.results[r].sizes() != value.type.shape.evaluate(symbols))
      throw fail(E::bad_file, "routine {} does not give {}", launch.call.name, value.type.text());
    const Tensor& result = found.results[r];
    if (result.bytes() == 0) continue;
    if (is_plain(value, symbols))
      std::memmove(pointers[i], result.data(), result.bytes());
    else
      access_of(value, symbols).store(result, pointers[i]);
  }
}

/// Symbols that some launch has yet to give have no value.
void ContextState::forget_sizes(size_t from) {
  for (size_t l = from; l < program->launches.size(); ++l)
    for (const std::string& symbol : program->launches[l].routine.call.defines) symbol_values.erase(symbol);
}

void ContextState::number_symbols() {
  symbols.resize(program->symbols.size());
  for (size_t i = 0; i < symbols.size(); ++i) {
    const auto at = symbol_values.find(program->symbols[i]);
    symbols[i] = at == symbol_values.end() ? 0 : at->second;
  }
}

/// No caller gives a size that the run finds.
static Error about_found(const Error& error, const std::set<std::string>& found) {
  Diagnostic what = error.diagnostic();
  what.hint.clear();
  for (const std::string& size : found) what.hint += (what.hint.empty() ? "" : ", ") + size;
  what.hint +=
      ": found by this run, not the size of an input. Both branches of an If that the run decides are computed: "
      "within one, they have to suit the other case too";
  return Error(what);
}

/// What must hold between sizes, once: when the last of them is known.
void ContextState::check_found_sizes(const RoutineLaunch& launch) const {
  const std::set<std::string> fresh(launch.call.defines.begin(), launch.call.defines.end());
  for (const DimConstraint& c : executable->artifact.constraints) {
    bool now = false, all = true;
    for (const std::string& symbol : symbols_of(c.relation))
      now |= fresh.contains(symbol), all &= symbol_values.contains(symbol);
    if (!now || !all) continue;
    try {
      check({c}, symbol_values);
    } catch (const Error& error) {
      throw about_found(error, fresh);
    }
  }
}

void ContextState::run_routine_at(size_t number) {
  const ArtifactLaunch& launch = program->launches[number];
  void** own = const_cast<void**>(ready[number].pointers);
  const std::span<void* const> pointers(own, launch.buffers.size());
  const RoutineResult found = run_routine(launch.routine, pointers, symbol_values);
  bool same = ready.size() > number + 1 || number + 1 == program->launches.size();
  for (size_t i = 0; i < found.sizes.size(); ++i) {
    const auto at = symbol_values.find(launch.routine.call.defines[i]);
    same = same && at != symbol_values.end() && at->second == found.sizes[i];
  }
  if (!same) {
    dirty = true;              // nothing is resolved while this may fail
    ready.resize(number + 1);  // what follows was resolved for other sizes
    forget_sizes(number);
    for (size_t i = 0; i < found.sizes.size(); ++i) symbol_values[launch.routine.call.defines[i]] = found.sizes[i];
    number_symbols();
    check_found_sizes(launch.routine);
    resolve_outputs();
    reserve_later(number);
    for (size_t i = static_cast<size_t>(launch.routine.inputs); i < launch.buffers.size(); ++i)
      if (launch.buffers[i] >= 0) own[i] = address_of(program->buffers[static_cast<size_t>(launch.buffers[i])]);
    resolve_launches(number + 1);
    dirty = false;
  }
  store_results(launch.routine, found, pointers, symbol_values);
}

/// The arena of the level that begins behind a launch.
void ContextState::reserve_later(size_t number) {
  size_t level = 0;
  for (size_t l = 0; l <= number; ++l) level += program->launches[l].is_routine();
  int64_t bytes = 0;
  for (const ArtifactBuffer& b : program->buffers)
    if (b.storage == Storage::arena && b.root == static_cast<int>(level) && is_known(b.offset, symbol_values) &&
        is_known(b.bytes, symbol_values))
      bytes = std::max(bytes, b.offset.evaluate(symbol_values) + b.bytes.evaluate(symbol_values));
  later_arenas.resize(std::max(later_arenas.size(), level));
  Memory& arena = later_arenas[level - 1];
  if (arena.bytes() < static_cast<size_t>(bytes)) arena = Memory(static_cast<size_t>(bytes), options.allocator);
  later_bytes[level - 1] = bytes;
  check_memory();
}

}  // namespace opfuse
