// Reading an .opf is total: what an index, a size or a symbol says is compared with what there is, here for what the
// header alone tells, in check_ranges for what the sizes of a run tell. The contract covers what no comparison can:
// that a kernel was generated for these arguments.
#include "runtime/artifact_check.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/fail.hpp"
#include "runtime/artifact_devices.hpp"
#include "runtime/artifact_json.hpp"
#include "runtime/check_devices.hpp"
#include "runtime/prepared_constants.hpp"
#include "runtime/routine_launch.hpp"
#include "runtime/tensor_map_json.hpp"

namespace opfuse {
namespace {

using nlohmann::json;

/// As version 1 of the section had it: loops over images by buffer, those over steps by launch.
json contract_of_loops(const ArtifactProgram& p, const json& shared) {
  json steps = json::array();
  std::string symbol;
  int64_t launches = 0, from = 0;
  std::vector<int64_t> bytes;
  for (const ArtifactBody& body : p.bodies) {
    if (body.steps) {
      steps.push_back({body.first, body.launches, body.times.text()});
      continue;
    }
    symbol = body.symbol, launches = body.launches, from = symbol.empty() ? body.times.value() : body.from;
    bytes.assign(p.buffers.size(), 0);
    for (int64_t l = 0; l < launches; ++l) {
      const ArtifactLaunch& launch = p.launches[static_cast<size_t>(l)];
      for (size_t i = 0; i < launch.buffers.size(); ++i)
        bytes[static_cast<size_t>(launch.buffers[i])] = launch.steps[i].bytes.value();
    }
  }
  for (size_t l = static_cast<size_t>(launches); l < p.launches.size(); ++l)
    for (const ArtifactLaunch::Step& step : p.launches[l].steps) steps.push_back({step.bytes.text(), step.first});
  return {steps,  shared.at(0), shared.at(1), shared.at(2), shared.at(3),
          symbol, launches,     from,         bytes,        p.intermediate_bytes.text()};
}

json placed_contract(const PlacedLaunch& placed) {
  json values = json::array();
  for (const PlacedValue& v : placed.values) {
    values.push_back(v.type.text() + " " + v.layout.text());
    for (const Dim& stride : v.strides) values.push_back(stride.text());
  }
  return {static_cast<int>(placed.kind), placed.device, placed.inputs, placed.piece, placed.symbols, values};
}

json contract_json(const ArtifactProgram& p) {
  json buffers = json::array(), launches = json::array();
  for (const ArtifactBuffer& b : p.buffers)
    buffers.push_back({static_cast<int>(b.storage), b.root, b.offset.text(), b.bytes.text()});
  for (const ArtifactLaunch& l : p.launches) {
    const DeviceLaunch& d = l.device;
    launches.push_back({l.code_offset, l.symbol, l.buffers, l.parts.text(), l.scratch_bytes, d.grid.text(), d.block,
                        d.code_bytes, d.registers, d.shared_bytes, d.launch_shared.text(), d.launch_shared_most});
    if (!d.maps.empty()) launches.push_back(tensor_maps_json(d.maps));
    if (l.placed.kind != PlacedLaunch::Kind::none) launches.push_back(placed_contract(l.placed));
    if (l.is_routine()) launches.push_back(routine_json(l.routine));
  }
  json steps = json::array(), bodies = json::array();
  for (const ArtifactLaunch& l : p.launches)
    for (const ArtifactLaunch::Step& step : l.steps) steps.push_back({step.bytes.text(), step.first});
  for (const ArtifactBody& body : p.bodies)
    bodies.push_back({body.steps, body.first, body.launches, body.times.text(), body.symbol, body.from});
  if (p.bodies_in_two) return contract_of_loops(p, {p.symbols, buffers, launches, p.arena_bytes.text()});
  return {bodies, steps, p.symbols, buffers, launches, p.arena_bytes.text(), p.intermediate_bytes.text()};
}

json contract_json(const std::vector<ArtifactTensor>& tensors) {
  json list = json::array();
  for (const ArtifactTensor& t : tensors) list.push_back({t.name, t.type.text(), t.buffer, t.indexes});
  return list;
}

void check_buffer(const Artifact& a, const ArtifactProgram& program, const ArtifactBuffer& b) {
  if (b.storage == Storage::arena) consistent(b.root >= -1 && b.root <= routines_in(program), "buffers");
  if (b.storage == Storage::input) consistent(b.root >= 0 && b.root < static_cast<int>(a.inputs.size()), "buffers");
  if (b.storage == Storage::output) consistent(b.root >= 0 && b.root < static_cast<int>(a.outputs.size()), "buffers");
  if (b.storage != Storage::constant || !b.offset.is_constant() || !b.bytes.is_constant()) return;
  const int64_t offset = b.offset.value(), bytes = b.bytes.value(), size = static_cast<int64_t>(a.constants.size());
  consistent(offset >= 0 && bytes >= 0 && offset <= size && bytes <= size - offset, "constants");
}

/// Some operand moves, and no further than the largest buffer goes: so what a run is given bounds how often a body
/// runs.
bool holds_parts(const ArtifactProgram& program, const ArtifactBody& body) {
  bool moves = false;
  int64_t furthest = 0, largest = 0;
  for (int64_t l = body.first; l < body.first + body.launches; ++l)
    for (const ArtifactLaunch::Step& step : program.launches[static_cast<size_t>(l)].steps) {
      moves |= !(step.bytes == Dim(0));
      if (step.bytes.is_constant()) furthest = std::max(furthest, step.bytes.value());
    }
  if (!moves || body.steps || !body.symbol.empty() || furthest == 0) return moves;
  for (const ArtifactBuffer& b : program.buffers)
    if (b.bytes.is_constant()) largest = std::max(largest, b.bytes.value());
  return body.times.is_constant() && body.times.value() >= 0 && body.times.value() <= largest / furthest;
}

void check_body(const ArtifactProgram& program, const ArtifactBody& body) {
  const auto& symbols = program.symbols;
  const bool open = !body.symbol.empty();
  consistent(!(body.steps && open) && (open ? body.from > 0 : body.from == 0) && holds_parts(program, body), "bodies");
  consistent(!open || std::find(symbols.begin(), symbols.end(), body.symbol) != symbols.end(), "bodies");
  for (int64_t l = body.first; l < body.first + body.launches; ++l) {
    const ArtifactLaunch& launch = program.launches[static_cast<size_t>(l)];
    consistent(launch.steps.size() == launch.buffers.size() && !launch.steps.empty(), "bodies");
    for (const ArtifactLaunch::Step& step : launch.steps)
      consistent(step.first < static_cast<int>(launch.buffers.size()) &&
                     (body.steps || (step.first < 0 && !(step.bytes.is_constant() && step.bytes.value() < 0))),
                 "bodies");
  }
}

void check_bodies(const Artifact& a, const ArtifactProgram& program) {
  int64_t end = 0;
  const auto launches = static_cast<int64_t>(program.launches.size());
  int64_t inside = 0;
  for (const ArtifactBody& body : program.bodies) {
    consistent(!a.on_device() && body.first >= end && body.first < launches && body.launches > 0 &&
                   body.launches <= launches - body.first,
               "bodies");
    check_body(program, body);
    end = body.first + body.launches;
    inside += body.launches;
  }
  for (const ArtifactLaunch& l : program.launches) inside -= l.steps.empty() ? 0 : 1;
  consistent(inside == 0, "bodies");
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
  for (const ArtifactBody& body : program.bodies) uses({&body.times});
  for (const ArtifactLaunch& l : program.launches)
    uses({&l.parts, &l.flops, &l.bytes_read, &l.bytes_written, &l.device.grid, &l.device.launch_shared});
  for (const ArtifactLaunch& l : program.launches)
    for (const TensorMap& map : l.device.maps)
      for (const auto* dims : {&map.sizes, &map.strides})
        for (const Dim& d : *dims) uses({&d});
  const std::set<std::string> known = known_symbols(a, program);
  used.insert(program.symbols.begin(), program.symbols.end());
  consistent(std::includes(known.begin(), known.end(), used.begin(), used.end()), "dimensions");
}

/// What fixed sizes allow to tell before a run.
bool may_fit(const ArtifactProgram& program, const ArtifactBuffer& b) {
  if (b.offset.is_constant() && b.offset.value() < 0) return false;
  if (b.bytes.is_constant() && b.bytes.value() <= 0) return b.bytes.value() == 0;  // of nothing, anywhere
  if (b.storage != Storage::arena || b.root > 0 || !b.offset.is_constant() || !program.arena_bytes.is_constant())
    return true;
  const int64_t arena = program.arena_bytes.value(), offset = b.offset.value();
  return offset <= arena && (!b.bytes.is_constant() || b.bytes.value() <= arena - offset);
}

void check_program(const Artifact& a, const ArtifactProgram& program) {
  const int buffers = static_cast<int>(program.buffers.size());
  for (const ArtifactLaunch& l : program.launches) {
    if (l.placed.kind != PlacedLaunch::Kind::none) {
      for (int b : l.buffers) consistent(b >= 0 && b < buffers, "launch buffers");
      check_placed(a, program, l);
      continue;
    }
    if (l.is_routine()) {
      for (int b : l.buffers) consistent(b >= -1 && b < buffers, "launch buffers");
      check_routine(a, program, l);
      continue;
    }
    consistent(l.code_offset < a.code.size() && l.scratch_bytes >= 0, "launches");
    consistent((l.device.block > 0) == a.on_device() && l.device.code_bytes <= a.code.size() - l.code_offset,
               "launches");
    for (int b : l.buffers) consistent(b >= 0 && b < buffers, "launch buffers");
  }
  for (const ArtifactBuffer& b : program.buffers) {
    check_buffer(a, program, b);
    consistent(may_fit(program, b), "buffers");
  }
  check_symbols(a, program);
  check_bodies(a, program);
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
  const std::set<std::string> bound = known_symbols(a, a);
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
  for (const ArtifactDevice& device : a.devices)
    if (device.program) check_gpu_pieces(device);
}

Hash128 contract_of(const Artifact& a, const std::string& constants_hash, int format) {
  json variants = json::array();
  for (const ArtifactVariant& variant : a.variants)
    variants.push_back({contract_json(variant), variant.when, variant.stretches});
  json constraints = json::array();
  for (const DimConstraint& c : a.constraints)
    constraints.push_back({static_cast<int>(c.relation.rule), c.relation.a.text(), c.relation.b.text()});
  json contract = {contract_json(static_cast<const ArtifactProgram&>(a)),
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
  if (!a.prepared.empty()) contract.push_back(prepared_json(a.prepared));
  for (const ArtifactDevice& device : a.devices) {
    const std::vector<uint8_t> bytes = device_section(device);
    contract.push_back(hash_bytes(bytes.data(), bytes.size()).hex());
  }
  return hash_text(contract.dump(-1, ' ', false, json::error_handler_t::replace));
}

namespace {

void check_range(const ArtifactBuffer& b, int64_t offset, int64_t bytes, const RunMemory& memory) {
  const int64_t whole = whole_of(b, memory);
  if (bytes == 0 || whole == kLater) return;  // a part of an empty value lies nowhere
  if (offset < 0 || bytes < 0 || offset > whole || bytes > whole - offset)
    throw fail(E::bad_file, "buffer '{}' has {} bytes at {}, beyond the {} that there are", b.name, bytes, offset,
               whole)
        .hint("an .opf is a cache: compile the model again");
}

/// The parts of all times; of none where a body never runs. Adds what it moved to `slices`. Buffers of an open batch
/// are those of all its parts.
void check_slices(const ArtifactProgram& program, const ArtifactBody& body, const SymbolValues& sizes,
                  const RunMemory& memory, std::set<int>& slices) {
  if (!body.symbol.empty()) return;
  if (!is_known(body.times, sizes)) return;
  const int64_t steps = body.times.evaluate(sizes);
  for (int64_t l = body.first; l < body.first + body.launches; ++l) {
    const ArtifactLaunch& launch = program.launches[static_cast<size_t>(l)];
    for (size_t i = 0; i < launch.steps.size(); ++i) {
      if (!is_known(launch.steps[i].bytes, sizes)) continue;
      const int64_t step = launch.steps[i].bytes.evaluate(sizes);
      if (step == 0) continue;
      slices.insert(launch.buffers[i]);
      const ArtifactBuffer& b = program.buffers[static_cast<size_t>(launch.buffers[i])];
      const int64_t offset = b.offset.evaluate(sizes), all = b.bytes.evaluate(sizes);
      const int64_t bytes = body.steps ? all : std::min(all, step);  // files of version 1 name the whole for its part
      for (const int64_t at : {int64_t{0}, steps - 1})
        if (steps > 0) check_range(b, offset + at * step, bytes, memory);
    }
  }
}

}  // namespace

void check_ranges(const ArtifactProgram& program, const SymbolValues& sizes, const RunMemory& memory) {
  const bool found = routines_in(program) > 0;
  std::set<int> slices;
  for (const ArtifactBody& body : program.bodies) check_slices(program, body, sizes, memory, slices);
  for (const ArtifactLaunch& launch : program.launches) check_placed_ranges(program, launch, sizes, memory);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const ArtifactBuffer& b = program.buffers[i];
    const bool later = found && !(is_known(b.offset, sizes) && is_known(b.bytes, sizes));
    if (!later && !slices.contains(static_cast<int>(i)))
      check_range(b, b.offset.evaluate(sizes), b.bytes.evaluate(sizes), memory);
  }
}

}  // namespace opfuse
