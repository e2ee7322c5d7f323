// Reading an .opf is total: what an index, a size or a symbol says is compared with what there is, here for what the
// header alone tells, in check_ranges for what the sizes of a run tell. The contract covers what no comparison can:
// that a kernel was generated for these arguments.
#include "runtime/artifact_check.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/fail.hpp"

namespace opfuse {
namespace {

using nlohmann::json;

json contract_json(const ArtifactProgram& p) {
  json buffers = json::array(), launches = json::array();
  for (const ArtifactBuffer& b : p.buffers)
    buffers.push_back({static_cast<int>(b.storage), b.root, b.offset.text(), b.bytes.text()});
  for (const ArtifactLaunch& l : p.launches) {
    const DeviceLaunch& d = l.device;
    launches.push_back({l.code_offset, l.symbol, l.buffers, l.parts.text(), l.scratch_bytes, d.grid.text(), d.block,
                        d.code_bytes, d.registers, d.shared_bytes, d.launch_shared.text(), d.launch_shared_most});
  }
  json steps = json::array();
  for (const ArtifactStepLoop& loop : p.step_loops) steps.push_back({loop.first, loop.launches, loop.steps.text()});
  for (const ArtifactLaunch& l : p.launches)
    for (const ArtifactLaunch::Step& step : l.steps) steps.push_back({step.bytes.text(), step.first});
  const ArtifactImageLoop& loop = p.image_loop;
  return {steps,       p.symbols,     buffers,   launches,   p.arena_bytes.text(),
          loop.symbol, loop.launches, loop.from, loop.steps, p.intermediate_bytes.text()};
}

json contract_json(const std::vector<ArtifactTensor>& tensors) {
  json list = json::array();
  for (const ArtifactTensor& t : tensors) list.push_back({t.name, t.type.text(), t.buffer, t.indexes});
  return list;
}

void consistent(bool ok, const char* what) {
  if (!ok) throw fail(E::bad_file, "the header's {} are inconsistent", what);
}

void check_buffer(const Artifact& a, const ArtifactBuffer& b) {
  if (b.storage == Storage::input) consistent(b.root >= 0 && b.root < static_cast<int>(a.inputs.size()), "buffers");
  if (b.storage == Storage::output) consistent(b.root >= 0 && b.root < static_cast<int>(a.outputs.size()), "buffers");
  if (b.storage != Storage::constant || !b.offset.is_constant() || !b.bytes.is_constant()) return;
  const int64_t offset = b.offset.value(), bytes = b.bytes.value(), size = static_cast<int64_t>(a.constants.size());
  consistent(offset >= 0 && bytes >= 0 && offset <= size && bytes <= size - offset, "constants");
}

/// Of a constant batch the file itself says how many images there are: no more than their maps hold.
bool holds_images(const ArtifactProgram& program) {
  const ArtifactImageLoop& loop = program.image_loop;
  if (!loop.symbol.empty()) return true;
  const int64_t step = *std::max_element(loop.steps.begin(), loop.steps.end());
  int64_t largest = 0;
  for (const ArtifactBuffer& b : program.buffers)
    if (b.bytes.is_constant()) largest = std::max(largest, b.bytes.value());
  return loop.from > 1 && step > 0 && loop.from <= largest / step;
}

void check_image_loop(const Artifact& a, const ArtifactProgram& program) {
  const ArtifactImageLoop& loop = program.image_loop;
  if (loop.launches == 0) return;
  const auto& symbols = program.symbols;
  consistent(!a.on_device() && loop.launches > 0 && loop.launches <= static_cast<int64_t>(program.launches.size()) &&
                 loop.from > 0 && !loop.steps.empty() && loop.steps.size() == program.buffers.size() &&
                 (loop.symbol.empty() || std::find(symbols.begin(), symbols.end(), loop.symbol) != symbols.end()) &&
                 std::all_of(loop.steps.begin(), loop.steps.end(), [](int64_t step) { return step >= 0; }),
             "image loop");
  consistent(holds_images(program), "image loop");
}

void check_step_loops(const Artifact& a, const ArtifactProgram& program) {
  int64_t end = program.image_loop.launches;
  const auto launches = static_cast<int64_t>(program.launches.size());
  int64_t looped = 0;
  for (const ArtifactStepLoop& loop : program.step_loops) {
    consistent(!a.on_device() && loop.first >= end && loop.first < launches && loop.launches > 0 &&
                   loop.launches <= launches - loop.first,
               "step loops");
    end = loop.first + loop.launches;
    for (int64_t l = loop.first; l < end; ++l) {
      const ArtifactLaunch& launch = program.launches[static_cast<size_t>(l)];
      consistent(launch.steps.size() == launch.buffers.size() && !launch.steps.empty(), "step loops");
      for (const ArtifactLaunch::Step& step : launch.steps)
        consistent(step.first < static_cast<int>(launch.buffers.size()), "step loops");
    }
    looped += loop.launches;
  }
  for (const ArtifactLaunch& l : program.launches) looped -= l.steps.empty() ? 0 : 1;
  consistent(looped == 0, "step loops");
}

/// Symbols that the inputs give.
std::set<std::string> bound_symbols(const Artifact& a) {
  std::set<std::string> symbols;
  for (const ArtifactTensor& t : a.inputs)
    for (const Dim& dim : t.type.shape.dims) dim.collect_symbols(symbols);
  return symbols;
}

/// Each dimension of a program is computed from what the inputs give.
void check_symbols(const Artifact& a, const ArtifactProgram& program) {
  std::set<std::string> used;
  const auto uses = [&](std::initializer_list<const Dim*> dims) {
    for (const Dim* dim : dims) dim->collect_symbols(used);
  };
  uses({&program.arena_bytes, &program.intermediate_bytes});
  for (const ArtifactBuffer& b : program.buffers) uses({&b.offset, &b.bytes});
  for (const ArtifactLaunch& l : program.launches)
    for (const ArtifactLaunch::Step& step : l.steps) uses({&step.bytes});
  for (const ArtifactStepLoop& loop : program.step_loops) uses({&loop.steps});
  for (const ArtifactLaunch& l : program.launches)
    uses({&l.parts, &l.flops, &l.bytes_read, &l.bytes_written, &l.device.grid, &l.device.launch_shared});
  const std::set<std::string> known = bound_symbols(a);
  used.insert(program.symbols.begin(), program.symbols.end());
  consistent(std::includes(known.begin(), known.end(), used.begin(), used.end()), "dimensions");
}

/// What fixed sizes allow to tell before a run.
bool may_fit(const ArtifactProgram& program, const ArtifactBuffer& b) {
  if (b.offset.is_constant() && b.offset.value() < 0) return false;
  if (b.bytes.is_constant() && b.bytes.value() < 0) return false;
  if (b.storage != Storage::arena || !b.offset.is_constant() || !program.arena_bytes.is_constant()) return true;
  const int64_t arena = program.arena_bytes.value(), offset = b.offset.value();
  return offset <= arena && (!b.bytes.is_constant() || b.bytes.value() <= arena - offset);
}

void check_program(const Artifact& a, const ArtifactProgram& program) {
  const int buffers = static_cast<int>(program.buffers.size());
  for (const ArtifactLaunch& l : program.launches) {
    consistent(l.code_offset < a.code.size() && l.scratch_bytes >= 0, "launches");
    consistent((l.device.block > 0) == a.on_device() && l.device.code_bytes <= a.code.size() - l.code_offset,
               "launches");
    for (int b : l.buffers) consistent(b >= 0 && b < buffers, "launch buffers");
  }
  for (const ArtifactBuffer& b : program.buffers) {
    check_buffer(a, b);
    consistent(may_fit(program, b), "buffers");
  }
  check_symbols(a, program);
  check_image_loop(a, program);
  check_step_loops(a, program);
}

/// A variant fixes symbols of the program for all sizes and leaves the others open.
void check_variant(const Artifact& a, const ArtifactVariant& variant) {
  const auto known = [&](const std::string& symbol) {
    return std::find(a.symbols.begin(), a.symbols.end(), symbol) != a.symbols.end();
  };
  consistent(variant.when.empty() == variant.stretches && !a.on_device(), "variants");
  for (const auto& [symbol, size] : variant.when) consistent(known(symbol) && size >= 0, "variants");
  for (const std::string& symbol : variant.symbols)
    consistent(known(symbol) && !variant.when.contains(symbol), "variants");
  check_program(a, variant);
}

}  // namespace

void check_artifact(const Artifact& a) {
  const int buffers = static_cast<int>(a.buffers.size());
  const std::set<std::string> bound = bound_symbols(a);
  std::set<std::string> read;  // that outputs need
  for (const auto* tensors : {&a.inputs, &a.outputs})
    for (const ArtifactTensor& t : *tensors)
      consistent(t.buffer >= 0 && t.buffer < buffers && t.type.shape.ranked && t.indexes >= 0,
                 tensors == &a.inputs ? "inputs" : "outputs");
  for (const ArtifactTensor& t : a.outputs)
    for (const Dim& dim : t.type.shape.dims) dim.collect_symbols(read);
  consistent(std::includes(bound.begin(), bound.end(), read.begin(), read.end()), "outputs");
  std::set<std::string> constrained;
  for (const DimConstraint& c : a.constraints) {
    c.relation.a.collect_symbols(constrained);
    c.relation.b.collect_symbols(constrained);
  }
  consistent(std::includes(bound.begin(), bound.end(), constrained.begin(), constrained.end()), "constraints");
  check_program(a, a);
  for (const ArtifactVariant& variant : a.variants) check_variant(a, variant);
}

Hash128 contract_of(const Artifact& a, const std::string& constants_hash, int format) {
  json variants = json::array();
  for (const ArtifactVariant& variant : a.variants)
    variants.push_back({contract_json(variant), variant.when, variant.stretches});
  json constraints = json::array();
  for (const DimConstraint& c : a.constraints)
    constraints.push_back({static_cast<int>(c.relation.rule), c.relation.a.text(), c.relation.b.text()});
  const json contract = {contract_json(static_cast<const ArtifactProgram&>(a)),
                         variants,
                         constraints,
                         contract_json(a.inputs),
                         contract_json(a.outputs),
                         a.target,
                         a.cpu_features,
                         format,
                         a.codegen,
                         hash_bytes(a.code.data(), a.code.size()).hex(),
                         constants_hash};
  return hash_text(contract.dump(-1, ' ', false, json::error_handler_t::replace));
}

namespace {

void check_range(const ArtifactBuffer& b, int64_t offset, int64_t bytes, const RunMemory& memory) {
  const auto root = static_cast<size_t>(b.root);
  const int64_t whole = b.storage == Storage::input      ? memory.inputs[root]
                        : b.storage == Storage::output   ? memory.outputs[root]
                        : b.storage == Storage::constant ? memory.constants
                                                         : memory.arena;
  if (bytes == 0) return;  // a part of an empty value lies nowhere
  if (offset < 0 || bytes < 0 || offset > whole || bytes > whole - offset)
    throw fail(E::bad_file, "buffer '{}' has {} bytes at {}, beyond the {} that there are", b.name, bytes, offset,
               whole)
        .hint("an .opf is a cache: compile the model again");
}

/// The slices of all steps; of none where a loop has no step. Adds what it moved to `slices`.
void check_slices(const ArtifactProgram& program, const ArtifactStepLoop& loop, const SymbolValues& sizes,
                  const RunMemory& memory, std::set<int>& slices) {
  const int64_t steps = loop.steps.evaluate(sizes);
  for (int64_t l = loop.first; l < loop.first + loop.launches; ++l) {
    const ArtifactLaunch& launch = program.launches[static_cast<size_t>(l)];
    for (size_t i = 0; i < launch.steps.size(); ++i) {
      const int64_t step = launch.steps[i].bytes.evaluate(sizes);
      if (step == 0) continue;
      slices.insert(launch.buffers[i]);
      const ArtifactBuffer& b = program.buffers[static_cast<size_t>(launch.buffers[i])];
      const int64_t offset = b.offset.evaluate(sizes), bytes = b.bytes.evaluate(sizes);
      for (const int64_t at : {int64_t{0}, steps - 1})
        if (steps > 0) check_range(b, offset + at * step, bytes, memory);
    }
  }
}

}  // namespace

void check_ranges(const ArtifactProgram& program, const SymbolValues& sizes, const RunMemory& memory) {
  std::set<int> slices;
  for (const ArtifactStepLoop& loop : program.step_loops) check_slices(program, loop, sizes, memory, slices);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const ArtifactBuffer& b = program.buffers[i];
    if (!slices.contains(static_cast<int>(i)))
      check_range(b, b.offset.evaluate(sizes), b.bytes.evaluate(sizes), memory);
  }
}

}  // namespace opfuse
