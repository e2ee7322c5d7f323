// u64 bytes of JSON | JSON | a GPU's code, its constants; offsets count from the end of the JSON, aligned to its lines.
#include "runtime/artifact_devices.hpp"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "base/json_fields.hpp"
#include "runtime/artifact_json.hpp"

namespace opfuse {
namespace {

using nlohmann::json;

constexpr size_t kLine = 64;

size_t aligned(size_t offset) { return (offset + kLine - 1) / kLine * kLine; }

json pieces_json(const std::vector<GpuPiece>& pieces) {
  json list = json::array();
  for (const GpuPiece& p : pieces) list.push_back({p.launches, p.first_input, p.inputs, p.first_output, p.outputs});
  return list;
}

std::vector<GpuPiece> pieces_of(const json& list) {
  std::vector<GpuPiece> pieces;
  for (const json& p : listed(list))
    pieces.push_back({wholes<int>(listed(p, 5).at(0)), whole<int>(p.at(1)), whole<int>(p.at(2)), whole<int>(p.at(3)),
                      whole<int>(p.at(4))});
  return pieces;
}

}  // namespace

std::vector<uint8_t> device_section(const ArtifactDevice& device) {
  json header = {{"target", device.target}, {"library", device.library}, {"file", device.file}};
  std::span<const uint8_t> code, constants;
  if (device.program) {
    code = device.program->code, constants = device.program->constants;
    header["model"] = model_json(*device.program);
    header["program"] = program_json(*device.program);
    header["pieces"] = pieces_json(device.pieces);
    header["code_bytes"] = code.size();
    header["constant_bytes"] = constants.size();
  }
  const std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
  const uint64_t bytes = text.size();
  std::vector<uint8_t> section(sizeof bytes);
  std::memcpy(section.data(), &bytes, sizeof bytes);
  section.insert(section.end(), text.begin(), text.end());
  for (const std::span<const uint8_t>& blob : {code, constants}) {
    if (blob.empty()) continue;
    section.resize(aligned(section.size()));
    section.insert(section.end(), blob.begin(), blob.end());
  }
  return section;
}

ArtifactDevice device_of(std::span<const uint8_t> section) {
  uint64_t bytes = 0;
  if (section.size() < sizeof bytes) throw fail(E::bad_file, "the section of a device is too short");
  std::memcpy(&bytes, section.data(), sizeof bytes);
  if (bytes > section.size() - sizeof bytes) throw fail(E::bad_file, "the section of a device is too short");
  const auto* text = reinterpret_cast<const char*>(section.data() + sizeof bytes);
  const json header = json::parse(text, text + bytes);
  ArtifactDevice device{.target = header.at("target"), .library = header.at("library"), .file = header.at("file")};
  if (!header.contains("program")) {
    if (device.library.empty()) throw fail(E::bad_file, "the device {} has neither plug-in nor program", device.target);
    return device;
  }
  auto program = std::make_shared<Artifact>();
  read_model(header.at("model"), *program);
  read_program(header.at("program"), *program);
  size_t at = sizeof bytes + bytes;
  for (const auto& [key, into] : {std::pair{"code_bytes", &program->code}, {"constant_bytes", &program->constants}}) {
    const auto size = whole<size_t>(header.at(key));
    if (size == 0) continue;
    at = aligned(at);
    if (at > section.size() || size > section.size() - at)
      throw fail(E::bad_file, "the section of the device {} is too short", device.target);
    *into = section.subspan(at, size);
    at += size;
  }
  device.library.clear();
  device.pieces = pieces_of(header.at("pieces"));
  device.program = std::move(program);
  return device;
}

}  // namespace opfuse
