// Saving and loading an .opf: an artifact as sections (sections.hpp), and back. Behind the code lies the hash of the
// contract its kernels were generated for (artifact_check.hpp). What does not fit - versions, checksums, bounds, CPU
// features - is refused. Format 4, whose header held all that is JSON and had two blobs behind it, is read as well.
#include "runtime/artifact.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/fail.hpp"
#include "base/hash.hpp"
#include "base/json_fields.hpp"
#include "base/mapped_file.hpp"
#include "runtime/artifact_check.hpp"
#include "runtime/artifact_devices.hpp"
#include "runtime/artifact_json.hpp"
#include "runtime/prepared_constants.hpp"
#include "runtime/require_features.hpp"
#include "runtime/routine_launch.hpp"
#include "runtime/sections.hpp"

namespace opfuse {
namespace {

using nlohmann::json;

constexpr int kFormatWithoutSections = 4;
constexpr int kWithoutRoutines = 2;  ///< version of program and variants that earlier releases read

std::span<const uint8_t> span_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
std::string_view text_in(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Names that are not UTF-8 are written with U+FFFD in place of what is wrong.
std::string text_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

const char* code_section(const Artifact& a) { return a.on_device() ? "cubins" : "code"; }

/// The code as the file has it: the contract's hash behind it.
std::vector<uint8_t> sealed_code(const Artifact& a, const std::string& constants_hash) {
  std::vector<uint8_t> blob(a.code.begin(), a.code.end());
  const std::string contract = contract_of(a, constants_hash, kArtifactFormat).hex();
  blob.insert(blob.end(), contract.begin(), contract.end());
  return blob;
}

/// The code without it. E::bad_file when the header is not what its kernels were generated for.
void open_code(Artifact& a, std::span<const uint8_t> blob, const std::string& constants_hash) {
  const size_t seal = Hash128{}.hex().size();
  if (blob.size() < seal) throw fail(E::bad_file, "the code blob lacks its contract");
  a.code = blob.first(blob.size() - seal);
  const std::string contract(reinterpret_cast<const char*>(blob.data()) + a.code.size(), seal);
  if (contract != contract_of(a, constants_hash, a.format).hex())
    throw fail(E::bad_file,
               "the header was altered: its machine code was generated for other launches, buffers or types")
        .hint("compile the model again");
}

void check_versions(const json& header) {
  const int format = whole<int>(header.at("format")), codegen = whole<int>(header.at("codegen"));
  if ((format != kArtifactFormat && format != kFormatWithoutSections) || codegen != kCodegenVersion)
    throw fail(E::bad_file, "the file has format {}, codegen {}; this opfuse reads formats {} and {}, codegen {}",
               format, codegen, kFormatWithoutSections, kArtifactFormat, kCodegenVersion)
        .hint("compile the model again with this version of opfuse");
}

json json_of(const Section& section) {
  const std::string_view text = text_in(section.bytes);
  return json::parse(text.begin(), text.end());
}

void read_artifact(Artifact& a, std::string_view file, const FileHeader& header) {
  const SectionFile sections = read_sections(file, header);
  a.producer = sections.producer;
  a.skipped = sections.skipped;
  read_model(json_of(sections.at("model")), a);
  read_program(json_of(sections.at("program")), a);
  if (const Section* variants = sections.find("variants")) a.variants = variants_of(json_of(*variants));
  if (const Section* notes = sections.find("notes")) a.notes = json_of(*notes).get<std::vector<std::string>>();
  if (const Section* plan = sections.find("plan")) a.plan_json = text_in(plan->bytes);
  for (const Section& section : sections.sections)
    if (section.id.starts_with("device:")) a.devices.push_back(device_of(section.bytes));
  require_features(a);
  const Section& constants = sections.at("constants");
  a.constants = constants.bytes;
  if (const Section* prepared = sections.find("prepared"))
    a.prepared = prepared_of(json_of(*prepared), constants.bytes, a.owner);
  open_code(a, sections.at(code_section(a)).bytes, constants.xxh3);
  if (!a.prepared.empty()) prepare_constants(a, constants.bytes, a.owner);
}

/// Format 4.
void read_without_sections(Artifact& a, std::string_view file, const FileHeader& header) {
  const json& all = header.json;
  a.producer = all.at("producer");
  read_model(all, a);
  read_program(all, a);
  a.variants = variants_of(all.at("variants"));
  a.notes = all.at("notes").get<std::vector<std::string>>();
  a.plan_json = all.at("plan");
  const int device = whole<int>(all.at("device"));
  if (device != (a.on_device() ? known_section("cubins").newest : 0))
    throw fail(E::bad_file, "the file is for {} with device format {}", a.target, device)
        .hint("compile the model again with this version of opfuse");
  require_features(a);
  a.constants = checked_bytes(file, header.base, all.at("constants"), "constants");
  open_code(a, checked_bytes(file, header.base, all.at("code"), "code"), all.at("constants").at("xxh3"));
}

Artifact parse_artifact(const std::shared_ptr<const MappedFile>& mapping) {
  const FileHeader header = read_header(mapping->bytes());
  check_versions(header.json);
  Artifact a;
  a.owner = mapping;
  a.format = whole<int>(header.json.at("format"));
  if (a.format == kArtifactFormat)
    read_artifact(a, mapping->bytes(), header);
  else
    read_without_sections(a, mapping->bytes(), header);
  check_artifact(a);
  return a;
}

void refuse_host_launches(const ArtifactProgram& program, const std::string& path) {
  for (const ArtifactLaunch& launch : program.launches)
    if (launch.host && launch.placed.kind == PlacedLaunch::Kind::none)
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

/// As this release writes it, whatever release it was read from.
static Artifact in_this_version(Artifact artifact) {
  artifact.bodies_in_two = false;
  for (ArtifactVariant& variant : artifact.variants) variant.bodies_in_two = false;
  return artifact;
}

void save_artifact(const Artifact& loaded, const std::string& path) {
  const Artifact artifact = in_this_version(loaded);
  refuse_host_launches(artifact, path);
  for (const ArtifactVariant& variant : artifact.variants) refuse_host_launches(variant, path);
  const bool prepares = !artifact.prepared.empty();
  const std::vector<uint8_t> stored = prepares ? stored_constants(artifact) : std::vector<uint8_t>();
  const std::span<const uint8_t> constants = prepares ? stored : artifact.constants;
  const std::string constants_hash = hash_bytes(constants.data(), constants.size()).hex();
  const std::vector<uint8_t> code = sealed_code(artifact, constants_hash);
  const std::string model = text_of(model_json(artifact)), program = text_of(program_json(artifact)),
                    variants = text_of(variants_json(artifact.variants)), notes = text_of(json(artifact.notes)),
                    prepared = text_of(prepared_json(artifact.prepared));
  SectionFile file{kArtifactFormat, kCodegenVersion, artifact.producer, {}, {}};
  const int version = routines_in(artifact) == 0 ? kWithoutRoutines : 0;
  file.sections = {{"model", span_of(model)}, {"program", span_of(program), version}};
  if (!artifact.variants.empty()) file.sections.push_back({"variants", span_of(variants), version});
  if (!artifact.notes.empty()) file.sections.push_back({"notes", span_of(notes)});
  if (!artifact.plan_json.empty()) file.sections.push_back({"plan", span_of(artifact.plan_json)});
  file.sections.push_back({code_section(artifact), code});
  std::vector<std::vector<uint8_t>> devices;
  for (const ArtifactDevice& device : artifact.devices) devices.push_back(device_section(device));
  for (size_t i = 0; i < devices.size(); ++i)
    file.sections.push_back({"device:" + artifact.devices[i].target, devices[i]});
  if (prepares) file.sections.push_back({"prepared", span_of(prepared)});
  file.sections.push_back({.id = "constants", .bytes = constants, .xxh3 = constants_hash});
  AtomicFile out(path);
  write_sections(out, file);
  out.commit();
}

Artifact load_artifact(const std::string& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path, /*whole=*/true);
  try {
    return parse_artifact(file);
  } catch (const json::exception& e) {
    throw fail(E::bad_file, "a section is not what it should be: {}", e.what()).file(path);
  } catch (Error& e) {
    if (e.diagnostic().hint.empty()) e.hint("an .opf is a cache: compile the model again");
    throw e.file(path);
  }
}

}  // namespace opfuse
