// The .opf file:  "OPFUSE\0\1" | u64 header bytes | u64 XXH3 of the header | JSON header | blobs
// Blobs (code, constants) start on 4096-byte boundaries and carry their own checksums in the header. Behind the code
// lies the hash of the contract its kernels were generated for (artifact_check.hpp). What does not fit - magic, format,
// codegen version, checksum, bounds, CPU features - is refused.
#include "runtime/artifact.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/atomic_file.hpp"
#include "base/fail.hpp"
#include "base/hash.hpp"
#include "base/mapped_file.hpp"
#include "runtime/artifact_check.hpp"
#include "target/target.hpp"

namespace opfuse {
namespace {

using nlohmann::json;

constexpr char kMagic[8] = {'O', 'P', 'F', 'U', 'S', 'E', 0, 1};
constexpr size_t kPage = 4096;
constexpr size_t kPrefix = 24;

size_t page_align(size_t offset) { return (offset + kPage - 1) / kPage * kPage; }

std::string dim_text(const Dim& dim) { return dim.text(); }
Dim dim_of(const json& value) { return Dim::parse(value.get<std::string>()); }

/// A whole number that `T` holds; the library would convert fractions and drop bits.
template <class T>
T whole(const json& value) {
  if (!value.is_number_integer()) throw fail(E::bad_file, "{} in the header is not a whole number", value.dump());
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    if (std::in_range<T>(number)) return static_cast<T>(number);
  } else if (const int64_t number = value.get<int64_t>(); std::in_range<T>(number)) {
    return static_cast<T>(number);
  }
  throw fail(E::bad_file, "{} in the header is out of range", value.dump());
}

/// The list itself; E::bad_file when it is none, or has not `size` entries (0: any).
const json& listed(const json& list, size_t size = 0) {
  if (!list.is_array() || (size > 0 && list.size() != size))
    throw fail(E::bad_file, "a list in the header does not have the entries it should have");
  return list;
}

template <class T>
std::vector<T> wholes(const json& list) {
  std::vector<T> numbers;
  for (const json& value : listed(list)) numbers.push_back(whole<T>(value));
  return numbers;
}

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
    for (const ArtifactLaunch::Step& step : l.steps) list.back()["steps"].push_back({dim_text(step.bytes), step.first});
    if (const DeviceLaunch& d = l.device; d.block > 0)
      list.back()["device"] = {dim_text(d.grid),
                               d.block,
                               d.code_bytes,
                               d.registers,
                               d.shared_bytes,
                               d.spill_bytes,
                               dim_text(d.launch_shared),
                               d.launch_shared_most};
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
    if (const auto steps = l.find("steps"); steps != l.end())
      for (const json& step : *steps) launch.steps.push_back({dim_of(listed(step, 2).at(0)), whole<int>(step.at(1))});
    if (const auto d = l.find("device"); d != l.end())
      launch.device = {
          dim_of(listed(*d, 8).at(0)), whole<int>(d->at(1)),     whole<size_t>(d->at(2)), whole<int>(d->at(3)),
          whole<int64_t>(d->at(4)),    whole<int64_t>(d->at(5)), dim_of(d->at(6)),        whole<int64_t>(d->at(7))};
    launches.push_back(std::move(launch));
  }
  return launches;
}

json program_json(const ArtifactProgram& p) {
  json program = {{"symbols", p.symbols},
                  {"buffers", buffers_json(p.buffers)},
                  {"launches", launches_json(p.launches)},
                  {"arena_bytes", dim_text(p.arena_bytes)},
                  {"intermediate_bytes", dim_text(p.intermediate_bytes)},
                  {"layouts", p.layouts}};
  if (const ArtifactImageLoop& loop = p.image_loop; loop.launches > 0)
    program["image_loop"] = {loop.symbol, loop.launches, loop.from, loop.steps};
  for (const ArtifactStepLoop& loop : p.step_loops)
    program["step_loops"].push_back({loop.first, loop.launches, dim_text(loop.steps)});
  return program;
}

void read_program(const json& header, ArtifactProgram& program) {
  program.symbols = header.at("symbols").get<std::vector<std::string>>();
  program.buffers = buffers_of(header.at("buffers"));
  program.launches = launches_of(header.at("launches"));
  program.arena_bytes = dim_of(header.at("arena_bytes"));
  program.intermediate_bytes = dim_of(header.at("intermediate_bytes"));
  program.layouts = header.at("layouts").get<std::vector<std::pair<std::string, std::string>>>();
  if (const auto loop = header.find("image_loop"); loop != header.end())
    program.image_loop = {listed(*loop, 4).at(0), whole<int64_t>(loop->at(1)), whole<int64_t>(loop->at(2)),
                          wholes<int64_t>(loop->at(3))};
  if (const auto loops = header.find("step_loops"); loops != header.end())
    for (const json& loop : *loops)
      program.step_loops.push_back(
          {whole<int64_t>(listed(loop, 3).at(0)), whole<int64_t>(loop.at(1)), dim_of(loop.at(2))});
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

std::string hash_of(std::span<const uint8_t> blob) { return hash_bytes(blob.data(), blob.size()).hex(); }

json blob_json(std::span<const uint8_t> blob, size_t offset, const std::string& hash) {
  return {{"offset", offset}, {"bytes", blob.size()}, {"xxh3", hash}};
}

/// The code as the file has it: the contract's hash behind it.
std::vector<uint8_t> sealed_code(const Artifact& a, const std::string& constants_hash) {
  std::vector<uint8_t> blob(a.code.begin(), a.code.end());
  const std::string contract = contract_of(a, constants_hash).hex();
  blob.insert(blob.end(), contract.begin(), contract.end());
  return blob;
}

/// The code without it. E::bad_file when the header is not what its kernels were generated for.
void open_code(Artifact& a, std::span<const uint8_t> blob, const std::string& constants_hash) {
  const size_t seal = Hash128{}.hex().size();
  if (blob.size() < seal) throw fail(E::bad_file, "the code blob lacks its contract");
  a.code = blob.first(blob.size() - seal);
  const std::string contract(reinterpret_cast<const char*>(blob.data()) + a.code.size(), seal);
  if (contract != contract_of(a, constants_hash).hex())
    throw fail(E::bad_file,
               "the header was altered: its machine code was generated for other launches, buffers or types");
}

/// Blob offsets count from the end of the header, rounded up to a page: they do not depend on its size.
json header_json(const Artifact& a, std::span<const uint8_t> code, const std::string& constants_hash) {
  json header = program_json(a);
  header.update({{"format", a.format},
                 {"device", a.on_device() ? kDeviceFormat : 0},
                 {"codegen", a.codegen},
                 {"target", a.target},
                 {"cpu_features", a.cpu_features},
                 {"model", a.model_name},
                 {"model_hash", a.model_hash},
                 {"producer", a.producer},
                 {"inputs", tensors_json(a.inputs)},
                 {"outputs", tensors_json(a.outputs)},
                 {"fixed_inputs", fixed_json(a.fixed_inputs)},
                 {"variants", variants_json(a.variants)},
                 {"constraints", constraints_json(a.constraints)},
                 {"notes", a.notes},
                 {"plan", a.plan_json},
                 {"code", blob_json(code, 0, hash_of(code))},
                 {"constants", blob_json(a.constants, page_align(code.size()), constants_hash)}});
  return header;
}

void pad_to_page(AtomicFile& file) {
  static const char zeros[kPage] = {};
  file.write({zeros, page_align(file.written()) - file.written()});
}

template <class T>
std::string_view bytes_of(const T* data, size_t bytes) {
  return {reinterpret_cast<const char*>(data), bytes};
}

std::span<const uint8_t> blob_of(std::string_view file, size_t base, const json& blob, const char* what) {
  const auto offset = whole<size_t>(blob.at("offset")), bytes = whole<size_t>(blob.at("bytes"));
  if (base > file.size() || offset > file.size() - base || bytes > file.size() - base - offset || offset % kPage != 0)
    throw fail(E::bad_file, "the {} blob lies outside the file (truncated?)", what);
  const std::span<const uint8_t> span(reinterpret_cast<const uint8_t*>(file.data()) + base + offset, bytes);
  if (hash_of(span) != blob.at("xxh3").get<std::string>())
    throw fail(E::bad_file, "the checksum of the {} blob does not match: the file is damaged", what);
  return span;
}

void check_versions(const json& header) {
  const int format = whole<int>(header.at("format")), codegen = whole<int>(header.at("codegen"));
  if (format != kArtifactFormat || codegen != kCodegenVersion)
    throw fail(E::bad_file, "the file has format {}, codegen {}; this opfuse reads format {}, codegen {}", format,
               codegen, kArtifactFormat, kCodegenVersion)
        .hint("compile the model again with this version of opfuse");
}

void check_device(const Artifact& artifact, const json& header) {
  const int device = whole<int>(header.at("device"));
  if (device != (artifact.on_device() ? kDeviceFormat : 0))
    throw fail(E::bad_file, "the file is for {} with device format {}; this opfuse reads device format {}",
               artifact.target, device, kDeviceFormat)
        .hint("compile the model again with this version of opfuse");
}

void check_features(const Artifact& artifact) {
  const std::vector<std::string> host = host_features();
  for (const std::string& feature : artifact.cpu_features)
    if (std::find(host.begin(), host.end(), feature) == host.end())
      throw fail(E::unsupported_cpu,
                 "the executable was compiled for {} and needs the CPU feature {}, which this machine lacks",
                 artifact.target, feature)
          .hint("compile the model again with --target host, or with --target cpu:baseline for any x86-64");
}

Artifact parse_artifact(const std::shared_ptr<const MappedFile>& mapping) {
  const std::string_view file = mapping->bytes();
  uint64_t header_bytes = 0, header_hash = 0;
  if (file.size() < kPrefix || std::memcmp(file.data(), kMagic, sizeof kMagic) != 0)
    throw fail(E::bad_file, "the file does not start with the .opf magic");
  std::memcpy(&header_bytes, file.data() + 8, 8);
  std::memcpy(&header_hash, file.data() + 16, 8);
  if (header_bytes > file.size() - kPrefix) throw fail(E::bad_file, "the header is longer than the file (truncated?)");
  const char* text = file.data() + kPrefix;
  if (hash_bytes(text, header_bytes).low != header_hash)
    throw fail(E::bad_file, "the header's checksum does not match");
  const json header = json::parse(text, text + header_bytes);
  check_versions(header);
  Artifact a;
  a.target = header.at("target");
  a.cpu_features = header.at("cpu_features").get<std::vector<std::string>>();
  a.model_name = header.at("model");
  a.model_hash = header.at("model_hash");
  a.producer = header.at("producer");
  read_program(header, a);
  a.inputs = tensors_of(header.at("inputs"));
  a.outputs = tensors_of(header.at("outputs"));
  a.fixed_inputs = fixed_of(header.at("fixed_inputs"));
  a.variants = variants_of(header.at("variants"));
  a.constraints = constraints_of(header.at("constraints"));
  a.notes = header.at("notes").get<std::vector<std::string>>();
  a.plan_json = header.at("plan");
  check_device(a, header);
  check_features(a);
  const size_t base = page_align(kPrefix + header_bytes);
  a.constants = blob_of(file, base, header.at("constants"), "constants");
  open_code(a, blob_of(file, base, header.at("code"), "code"), header.at("constants").at("xxh3"));
  a.owner = mapping;
  check_artifact(a);
  return a;
}

void refuse_host_launches(const ArtifactProgram& program, const std::string& path) {
  for (const ArtifactLaunch& launch : program.launches)
    if (launch.host)
      throw fail(E::uncompilable, "'{}' runs in the interpreter, so there is no code of it to save", launch.name)
          .file(path)
          .hint("run the model from its .onnx with --allow-reference");
}

}  // namespace

const ArtifactProgram& Artifact::program_for(const SymbolValues& sizes) const {
  const auto meets = [&](const auto& item) {
    const auto at = sizes.find(item.first);
    return at != sizes.end() && at->second == item.second;
  };
  for (const ArtifactVariant& variant : variants) {
    if (variant.stretches ? !stretches(constraints, sizes, {})
                          : !std::all_of(variant.when.begin(), variant.when.end(), meets) ||
                                stretches(constraints, sizes, variant.when))
      continue;
    return variant;
  }
  return *this;
}

std::string text_of(const ArtifactVariant& variant) { return variant.stretches ? "stretching" : text_of(variant.when); }

std::string text_of(const SymbolValues& sizes) {
  std::string text;
  for (const auto& [symbol, size] : sizes) text += (text.empty() ? "" : " ") + symbol + "=" + std::to_string(size);
  return text;
}

void save_artifact(const Artifact& artifact, const std::string& path) {
  refuse_host_launches(artifact, path);
  for (const ArtifactVariant& variant : artifact.variants) refuse_host_launches(variant, path);
  const std::string constants_hash = hash_of(artifact.constants);
  const std::vector<uint8_t> code = sealed_code(artifact, constants_hash);
  const std::string header = header_json(artifact, code, constants_hash).dump();
  const uint64_t header_bytes = header.size(), header_hash = hash_bytes(header.data(), header.size()).low;
  AtomicFile file(path);
  file.write({kMagic, sizeof kMagic});
  file.write(bytes_of(&header_bytes, 8));
  file.write(bytes_of(&header_hash, 8));
  file.write(header);
  pad_to_page(file);
  file.write(bytes_of(code.data(), code.size()));
  pad_to_page(file);
  file.write(bytes_of(artifact.constants.data(), artifact.constants.size()));
  file.commit();
}

Artifact load_artifact(const std::string& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path, /*whole=*/true);
  try {
    return parse_artifact(file);
  } catch (const json::exception& e) {
    throw fail(E::bad_file, "the header is not what an .opf header should be: {}", e.what()).file(path);
  } catch (Error& e) {
    throw e.file(path).hint("an .opf is a cache: compile the model again");
  }
}

}  // namespace opfuse
