// The JSON sections of an .opf: `model` (where it came from, what it takes and gives), `program` and `variants`
// (buffers, launches, bodies). A key that changes what runs raises the section's version (sections.cpp); reading is
// total: what a field should be is checked here, what fields say about each other in artifact_check.cpp.
#include "runtime/artifact_json.hpp"

#include <cstring>

#include "base/fail.hpp"
#include "base/json_fields.hpp"
#include "runtime/tensor_map_json.hpp"

namespace opfuse {

using nlohmann::json;

namespace {

std::string dim_text(const Dim& dim) { return dim.text(); }
Dim dim_of(const json& value) { return Dim::parse(value.get<std::string>()); }

json tensors_json(const std::vector<ArtifactTensor>& tensors) {
  json list = json::array();
  for (const ArtifactTensor& t : tensors) list.push_back({t.name, t.type.text(), t.buffer, t.indexes});
  return list;
}

std::vector<ArtifactTensor> tensors_of(const json& list) {
  std::vector<ArtifactTensor> tensors;
  for (const json& t : listed(list))
    tensors.push_back(
        {listed(t, 4).at(0), parse_type(t.at(1).get<std::string>()), whole<int>(t.at(2)), whole<int64_t>(t.at(3))});
  return tensors;
}

json buffers_json(const std::vector<ArtifactBuffer>& buffers) {
  json list = json::array();
  for (const ArtifactBuffer& b : buffers)
    list.push_back({static_cast<int>(b.storage), b.root, dim_text(b.offset), dim_text(b.bytes), b.name});
  return list;
}

std::vector<ArtifactBuffer> buffers_of(const json& list) {
  std::vector<ArtifactBuffer> buffers;
  for (const json& b : listed(list)) {
    listed(b, 5);
    const int storage = whole<int>(b.at(0));
    if (storage < 0 || storage > 3) throw fail(E::bad_file, "a buffer has the unknown storage kind {}", storage);
    buffers.push_back({static_cast<Storage>(storage), whole<int>(b.at(1)), dim_of(b.at(2)), dim_of(b.at(3)), b.at(4)});
  }
  return buffers;
}

json value_json(const PlacedValue& v) {
  json strides = json::array();
  for (const Dim& stride : v.strides) strides.push_back(dim_text(stride));
  return {v.type.text(), v.layout.text(), strides};
}

PlacedValue value_of(const json& v) {
  PlacedValue value{parse_type(listed(v, 3).at(0).get<std::string>()), Layout::parse(v.at(1).get<std::string>()), {}};
  for (const json& stride : listed(v.at(2))) value.strides.push_back(dim_of(stride));
  return value;
}

RoutineLaunch routine_of(const json& j) {
  RoutineLaunch routine{
      {listed(j, 5).at(0), wholes<int64_t>(j.at(1)), j.at(2).get<std::vector<std::string>>()}, whole<int>(j.at(3)), {}};
  for (const json& v : listed(j.at(4))) routine.values.push_back(v.is_null() ? PlacedValue{} : value_of(v));
  return routine;
}

json placed_json(const PlacedLaunch& placed) {
  json values = json::array();
  for (const PlacedValue& v : placed.values) values.push_back(value_json(v));
  return {static_cast<int>(placed.kind), placed.device, placed.inputs, placed.piece, placed.symbols, values};
}

PlacedLaunch placed_of(const json& j) {
  const int kind = whole<int>(listed(j, 6).at(0));
  if (kind < 1 || kind > 3) throw fail(E::bad_file, "a launch of a device has the unknown kind {}", kind);
  PlacedLaunch placed{static_cast<PlacedLaunch::Kind>(kind),
                      whole<int>(j.at(1)),
                      whole<int>(j.at(2)),
                      j.at(3),
                      j.at(4).get<std::vector<std::string>>(),
                      {}};
  for (const json& v : listed(j.at(5))) placed.values.push_back(value_of(v));
  return placed;
}

json launches_json(const std::vector<ArtifactLaunch>& launches) {
  json list = json::array();
  for (const ArtifactLaunch& l : launches) {
    list.push_back({{"name", l.name},
                    {"symbol", l.symbol},
                    {"pattern", l.pattern},
                    {"sources", l.sources},
                    {"code", l.code_offset},
                    {"buffers", l.buffers},
                    {"parts", dim_text(l.parts)},
                    {"scratch", l.scratch_bytes},
                    {"flops", dim_text(l.flops)},
                    {"read", dim_text(l.bytes_read)},
                    {"written", dim_text(l.bytes_written)},
                    {"schedule", l.schedule}});
    if (l.products != ArtifactLaunch{}.products) list.back()["products"] = l.products;
    for (const ArtifactLaunch::Step& step : l.steps) list.back()["steps"].push_back({dim_text(step.bytes), step.first});
    if (l.placed.kind != PlacedLaunch::Kind::none) list.back()["placed"] = placed_json(l.placed);
    if (l.is_routine()) list.back()["routine"] = routine_json(l.routine);
    if (const DeviceLaunch& d = l.device; d.block > 0)
      list.back()["device"] = {dim_text(d.grid),
                               d.block,
                               d.code_bytes,
                               d.registers,
                               d.shared_bytes,
                               d.spill_bytes,
                               dim_text(d.launch_shared),
                               d.launch_shared_most};
    if (!l.device.maps.empty()) list.back()["maps"] = tensor_maps_json(l.device.maps);
  }
  return list;
}

std::vector<ArtifactLaunch> launches_of(const json& list) {
  std::vector<ArtifactLaunch> launches;
  for (const json& l : listed(list)) {
    ArtifactLaunch launch;
    launch.name = l.at("name");
    launch.symbol = l.at("symbol");
    launch.pattern = l.at("pattern");
    launch.sources = l.at("sources").get<std::vector<std::string>>();
    launch.code_offset = whole<size_t>(l.at("code"));
    launch.buffers = wholes<int>(l.at("buffers"));
    launch.parts = dim_of(l.at("parts"));
    launch.scratch_bytes = whole<int64_t>(l.at("scratch"));
    launch.flops = dim_of(l.at("flops"));
    launch.bytes_read = dim_of(l.at("read"));
    launch.bytes_written = dim_of(l.at("written"));
    launch.schedule = l.at("schedule");
    launch.products = l.value("products", launch.products);
    if (const auto steps = l.find("steps"); steps != l.end())
      for (const json& step : *steps) launch.steps.push_back({dim_of(listed(step, 2).at(0)), whole<int>(step.at(1))});
    if (const auto placed = l.find("placed"); placed != l.end()) launch.placed = placed_of(*placed);
    if (const auto routine = l.find("routine"); routine != l.end()) launch.routine = routine_of(*routine);
    if (const auto d = l.find("device"); d != l.end())
      launch.device = {
          dim_of(listed(*d, 8).at(0)), whole<int>(d->at(1)),     whole<size_t>(d->at(2)), whole<int>(d->at(3)),
          whole<int64_t>(d->at(4)),    whole<int64_t>(d->at(5)), dim_of(d->at(6)),        whole<int64_t>(d->at(7))};
    if (const auto maps = l.find("maps"); maps != l.end())
      launch.device.maps = tensor_maps_of(*maps, launch.buffers.size());
    launches.push_back(std::move(launch));
  }
  return launches;
}

}  // namespace

json routine_json(const RoutineLaunch& routine) {
  json values = json::array();
  for (const PlacedValue& v : routine.values) values.push_back(v.type.dtype == DType::unknown ? json() : value_json(v));
  return {routine.call.name, routine.call.settings, routine.call.defines, routine.inputs, values};
}

json program_json(const ArtifactProgram& p) {
  json program = {{"symbols", p.symbols},
                  {"buffers", buffers_json(p.buffers)},
                  {"launches", launches_json(p.launches)},
                  {"arena_bytes", dim_text(p.arena_bytes)},
                  {"intermediate_bytes", dim_text(p.intermediate_bytes)},
                  {"layouts", p.layouts},
                  {"bodies", json::array()}};
  for (const ArtifactBody& body : p.bodies)
    program["bodies"].push_back(
        {body.steps ? "steps" : "parts", body.first, body.launches, dim_text(body.times), body.symbol, body.from});
  return program;
}

namespace {

std::vector<ArtifactBody> bodies_of(const json& list) {
  std::vector<ArtifactBody> bodies;
  for (const json& b : listed(list)) {
    const std::string kind = listed(b, 6).at(0);
    if (kind != "steps" && kind != "parts") throw fail(E::bad_file, "a body runs for each of unknown '{}'", kind);
    bodies.push_back({whole<int64_t>(b.at(1)), whole<int64_t>(b.at(2)), dim_of(b.at(3)), kind == "steps", b.at(4),
                      whole<int64_t>(b.at(5))});
  }
  return bodies;
}

/// Version 1: [batch, launches, images, bytes by buffer] of the first launches, and [first, launches, steps].
void read_loops(const json& header, ArtifactProgram& program) {
  program.bodies_in_two = true;
  if (const auto loop = header.find("image_loop"); loop != header.end()) {
    const std::string symbol = listed(*loop, 4).at(0);
    const auto launches = whole<int64_t>(loop->at(1)), images = whole<int64_t>(loop->at(2));
    const std::vector<int64_t> bytes = wholes<int64_t>(loop->at(3));
    if (launches < 0 || launches > static_cast<int64_t>(program.launches.size()) ||
        bytes.size() != program.buffers.size())
      throw fail(E::bad_file, "the loop over images does not fit the launches");
    program.bodies.push_back({.launches = launches,
                              .times = symbol.empty() ? Dim(images) : Dim::symbol(symbol),
                              .symbol = symbol,
                              .from = symbol.empty() ? 0 : images});
    for (int64_t l = 0; l < launches; ++l) {
      ArtifactLaunch& launch = program.launches[static_cast<size_t>(l)];
      for (int buffer : launch.buffers) {
        if (buffer < 0 || buffer >= static_cast<int>(bytes.size()))
          throw fail(E::bad_file, "a launch uses buffer {} of {}", buffer, bytes.size());
        launch.steps.push_back({Dim(bytes[static_cast<size_t>(buffer)]), -1});
      }
    }
  }
  if (const auto loops = header.find("step_loops"); loops != header.end())
    for (const json& loop : *loops)
      program.bodies.push_back({.first = whole<int64_t>(listed(loop, 3).at(0)),
                                .launches = whole<int64_t>(loop.at(1)),
                                .times = dim_of(loop.at(2)),
                                .steps = true});
}

}  // namespace

void read_program(const json& header, ArtifactProgram& program) {
  program.symbols = header.at("symbols").get<std::vector<std::string>>();
  program.buffers = buffers_of(header.at("buffers"));
  program.launches = launches_of(header.at("launches"));
  program.arena_bytes = dim_of(header.at("arena_bytes"));
  program.intermediate_bytes = dim_of(header.at("intermediate_bytes"));
  program.layouts = header.at("layouts").get<std::vector<std::pair<std::string, std::string>>>();
  if (const auto bodies = header.find("bodies"); bodies != header.end())
    program.bodies = bodies_of(*bodies);
  else
    read_loops(header, program);
}

json variants_json(const std::vector<ArtifactVariant>& variants) {
  json list = json::array();
  for (const ArtifactVariant& variant : variants) {
    list.push_back(program_json(variant));
    list.back()["when"] = variant.when;
    list.back()["stretches"] = variant.stretches;
    list.back()["adds"] = {variant.code_bytes, variant.constant_bytes};
  }
  return list;
}

std::vector<ArtifactVariant> variants_of(const json& list) {
  std::vector<ArtifactVariant> variants(listed(list).size());
  for (size_t i = 0; i < list.size(); ++i) {
    read_program(list[i], variants[i]);
    for (const auto& [symbol, size] : list[i].at("when").items()) variants[i].when[symbol] = whole<int64_t>(size);
    variants[i].code_bytes = whole<size_t>(listed(list[i].at("adds"), 2).at(0));
    variants[i].constant_bytes = whole<size_t>(list[i].at("adds").at(1));
    variants[i].stretches = list[i].at("stretches").get<bool>();
  }
  return variants;
}

namespace {

json constraints_json(const std::vector<DimConstraint>& constraints) {
  json list = json::array();
  for (const DimConstraint& c : constraints)
    list.push_back({static_cast<int>(c.relation.rule), dim_text(c.relation.a), dim_text(c.relation.b), c.relation.what,
                    c.node, c.op, c.operands});
  return list;
}

std::vector<DimConstraint> constraints_of(const json& list) {
  std::vector<DimConstraint> constraints;
  for (const json& c : listed(list)) {
    const int rule = whole<int>(listed(c, 7).at(0));
    if (rule < 0 || rule > static_cast<int>(DimRule::broadcast))
      throw fail(E::bad_file, "a constraint has the unknown rule {}", rule);
    constraints.push_back({{static_cast<DimRule>(rule), dim_of(c.at(1)), dim_of(c.at(2)), c.at(3)},
                           c.at(4),
                           c.at(5),
                           c.at(6).get<std::vector<std::string>>()});
  }
  return constraints;
}

/// Values of inputs that were fixed: small, as their bytes.
json fixed_json(const std::vector<std::pair<std::string, Tensor>>& fixed) {
  json list = json::array();
  for (const auto& [name, tensor] : fixed) {
    const auto* bytes = static_cast<const uint8_t*>(tensor.data());
    list.push_back({name, tensor.type().text(), std::vector<uint8_t>(bytes, bytes + tensor.bytes())});
  }
  return list;
}

std::vector<std::pair<std::string, Tensor>> fixed_of(const json& list) {
  std::vector<std::pair<std::string, Tensor>> fixed;
  for (const json& f : listed(list)) {
    const TensorType type = parse_type(listed(f, 3).at(1).get<std::string>());
    const std::vector<uint8_t> bytes = wholes<uint8_t>(f.at(2));
    Dim size = static_cast<int64_t>(byte_size(type.dtype));
    for (int64_t extent : type.shape.sizes()) size = size * Dim(extent);
    if (size.value() != static_cast<int64_t>(bytes.size()) || byte_size(type.dtype) == 0)
      throw fail(E::bad_file, "the value of the fixed input '{}' is not a {}", f.at(0).get<std::string>(), type.text());
    Tensor tensor(type.dtype, type.shape.sizes());
    if (!bytes.empty()) std::memcpy(tensor.mutable_data(), bytes.data(), bytes.size());
    fixed.emplace_back(f.at(0), std::move(tensor));
  }
  return fixed;
}

}  // namespace

json model_json(const Artifact& a) {
  return {{"target", a.target},
          {"cpu_features", a.cpu_features},
          {"model", a.model_name},
          {"model_hash", a.model_hash},
          {"inputs", tensors_json(a.inputs)},
          {"outputs", tensors_json(a.outputs)},
          {"fixed_inputs", fixed_json(a.fixed_inputs)},
          {"constraints", constraints_json(a.constraints)}};
}

void read_model(const json& model, Artifact& a) {
  a.target = model.at("target");
  a.cpu_features = model.at("cpu_features").get<std::vector<std::string>>();
  a.model_name = model.at("model");
  a.model_hash = model.at("model_hash");
  a.inputs = tensors_of(model.at("inputs"));
  a.outputs = tensors_of(model.at("outputs"));
  a.fixed_inputs = fixed_of(model.at("fixed_inputs"));
  a.constraints = constraints_of(model.at("constraints"));
}

}  // namespace opfuse
