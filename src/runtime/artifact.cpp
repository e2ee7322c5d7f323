// The .opf file:  "OPFUSE\0\1" | u64 header bytes | u64 XXH3 of the header | JSON header | blobs
// Blobs (code, constants) start on 4096-byte boundaries and carry their own checksums in the header.
// What does not fit - magic, format, codegen version, checksum, bounds, CPU features - is refused.
#include "runtime/artifact.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/fail.hpp"
#include "base/hash.hpp"
#include "base/mapped_file.hpp"
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

json tensors_json(const std::vector<ArtifactTensor>& tensors) {
  json list = json::array();
  for (const ArtifactTensor& t : tensors) list.push_back({t.name, t.type.text(), t.buffer, t.indexes});
  return list;
}

std::vector<ArtifactTensor> tensors_of(const json& list) {
  std::vector<ArtifactTensor> tensors;
  for (const json& t : list)
    tensors.push_back(
        {t.at(0), parse_type(t.at(1).get<std::string>()), t.at(2), t.size() > 3 ? t[3].get<int64_t>() : 0});
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
  for (const json& b : list) {
    const int storage = b.at(0);
    if (storage < 0 || storage > 3) throw fail(E::bad_file, "a buffer has the unknown storage kind {}", storage);
    buffers.push_back({static_cast<Storage>(storage), b.at(1), dim_of(b.at(2)), dim_of(b.at(3)), b.at(4)});
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
  for (const json& l : list) {
    ArtifactLaunch launch;
    launch.name = l.at("name");
    launch.symbol = l.at("symbol");
    launch.pattern = l.at("pattern");
    launch.sources = l.at("sources").get<std::vector<std::string>>();
    launch.code_offset = l.at("code");
    launch.buffers = l.at("buffers").get<std::vector<int>>();
    launch.parts = dim_of(l.at("parts"));
    launch.scratch_bytes = l.at("scratch");
    launch.flops = dim_of(l.at("flops"));
    launch.bytes_read = dim_of(l.at("read"));
    launch.bytes_written = dim_of(l.at("written"));
    launch.schedule = l.at("schedule");
    if (const auto d = l.find("device"); d != l.end())
      launch.device = {dim_of(d->at(0)), d->at(1), d->at(2), d->at(3), d->at(4), d->at(5), dim_of(d->at(6)), d->at(7)};
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
    program.image_loop = {loop->at(0), loop->at(1), loop->at(2), loop->at(3).get<std::vector<int64_t>>()};
}

json variants_json(const std::vector<ArtifactVariant>& variants) {
  json list = json::array();
  for (const ArtifactVariant& variant : variants) {
    list.push_back(program_json(variant));
    list.back()["when"] = variant.when;
    list.back()["adds"] = {variant.code_bytes, variant.constant_bytes};
  }
  return list;
}

std::vector<ArtifactVariant> variants_of(const json& list) {
  std::vector<ArtifactVariant> variants(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    read_program(list[i], variants[i]);
    variants[i].when = list[i].at("when").get<SymbolValues>();
    variants[i].code_bytes = list[i].at("adds").at(0);
    variants[i].constant_bytes = list[i].at("adds").at(1);
  }
  return variants;
}

json blob_json(std::span<const uint8_t> blob, size_t offset) {
  return {{"offset", offset}, {"bytes", blob.size()}, {"xxh3", hash_bytes(blob.data(), blob.size()).hex()}};
}

/// Blob offsets count from the end of the header, rounded up to a page: they do not depend on its size.
json header_json(const Artifact& a) {
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
                 {"variants", variants_json(a.variants)},
                 {"notes", a.notes},
                 {"plan", a.plan_json},
                 {"code", blob_json(a.code, 0)},
                 {"constants", blob_json(a.constants, page_align(a.code.size()))}});
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
  const uint64_t offset = blob.at("offset"), bytes = blob.at("bytes");
  if (base > file.size() || offset > file.size() - base || bytes > file.size() - base - offset)
    throw fail(E::bad_file, "the {} blob lies outside the file (truncated?)", what);
  const std::span<const uint8_t> span(reinterpret_cast<const uint8_t*>(file.data()) + base + offset, bytes);
  if (hash_bytes(span.data(), span.size()).hex() != blob.at("xxh3").get<std::string>())
    throw fail(E::bad_file, "the checksum of the {} blob does not match: the file is damaged", what);
  return span;
}

void check_versions(const json& header) {
  const int format = header.at("format"), codegen = header.at("codegen");
  if (format != kArtifactFormat || codegen != kCodegenVersion)
    throw fail(E::bad_file, "the file has format {}, codegen {}; this opfuse reads format {}, codegen {}", format,
               codegen, kArtifactFormat, kCodegenVersion)
        .hint("compile the model again with this version of opfuse");
}

void check_device(const Artifact& artifact, const json& header) {
  const int device = header.value("device", 0);
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
                 loop.from > 0 && loop.steps.size() == program.buffers.size() &&
                 (loop.symbol.empty() || std::find(symbols.begin(), symbols.end(), loop.symbol) != symbols.end()) &&
                 std::all_of(loop.steps.begin(), loop.steps.end(), [](int64_t step) { return step >= 0; }),
             "image loop");
  consistent(holds_images(program), "image loop");
}

void check_program(const Artifact& a, const ArtifactProgram& program) {
  const int buffers = static_cast<int>(program.buffers.size());
  for (const ArtifactLaunch& l : program.launches) {
    consistent(l.code_offset < a.code.size() && l.scratch_bytes >= 0, "launches");
    consistent((l.device.block > 0) == a.on_device() && l.device.code_bytes <= a.code.size() - l.code_offset,
               "launches");
    for (int b : l.buffers) consistent(b >= 0 && b < buffers, "launch buffers");
  }
  for (const ArtifactBuffer& b : program.buffers) check_buffer(a, b);
  check_image_loop(a, program);
}

/// A variant fixes symbols of the program for all sizes and leaves the others open.
void check_variant(const Artifact& a, const ArtifactVariant& variant) {
  const auto known = [&](const std::string& symbol) {
    return std::find(a.symbols.begin(), a.symbols.end(), symbol) != a.symbols.end();
  };
  consistent(!variant.when.empty() && !a.on_device(), "variants");
  for (const auto& [symbol, size] : variant.when) consistent(known(symbol) && size >= 0, "variants");
  for (const std::string& symbol : variant.symbols)
    consistent(known(symbol) && !variant.when.contains(symbol), "variants");
  check_program(a, variant);
}

void check_indices(const Artifact& a) {
  const int buffers = static_cast<int>(a.buffers.size());
  for (const auto* tensors : {&a.inputs, &a.outputs})
    for (const ArtifactTensor& t : *tensors)
      consistent(t.buffer >= 0 && t.buffer < buffers, tensors == &a.inputs ? "inputs" : "outputs");
  check_program(a, a);
  for (const ArtifactVariant& variant : a.variants) check_variant(a, variant);
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
  a.variants = variants_of(header.at("variants"));
  a.notes = header.at("notes").get<std::vector<std::string>>();
  a.plan_json = header.at("plan");
  check_device(a, header);
  check_features(a);
  const size_t base = page_align(kPrefix + header_bytes);
  a.code = blob_of(file, base, header.at("code"), "code");
  a.constants = blob_of(file, base, header.at("constants"), "constants");
  a.owner = mapping;
  check_indices(a);
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
  for (const ArtifactVariant& variant : variants)
    if (std::all_of(variant.when.begin(), variant.when.end(), meets)) return variant;
  return *this;
}

std::string text_of(const SymbolValues& sizes) {
  std::string text;
  for (const auto& [symbol, size] : sizes) text += (text.empty() ? "" : " ") + symbol + "=" + std::to_string(size);
  return text;
}

void save_artifact(const Artifact& artifact, const std::string& path) {
  refuse_host_launches(artifact, path);
  for (const ArtifactVariant& variant : artifact.variants) refuse_host_launches(variant, path);
  const std::string header = header_json(artifact).dump();
  const uint64_t header_bytes = header.size(), header_hash = hash_bytes(header.data(), header.size()).low;
  AtomicFile file(path);
  file.write({kMagic, sizeof kMagic});
  file.write(bytes_of(&header_bytes, 8));
  file.write(bytes_of(&header_hash, 8));
  file.write(header);
  pad_to_page(file);
  file.write(bytes_of(artifact.code.data(), artifact.code.size()));
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
