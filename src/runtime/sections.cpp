// The .opf container:  "OPFUSE\0\1" | u64 header bytes | u64 XXH3 of the header | JSON header | sections
// The header is a table {format, codegen, producer, sections: [{id, version, required, since, offset, bytes, xxh3}]};
// offsets count from the first page behind it and ascend. What a release adds to the file is a section of its own or a
// later version of one: readers of other releases skip it, or say which release they would have to be.
#include "runtime/sections.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/fail.hpp"
#include "base/hash.hpp"
#include "base/json_fields.hpp"

namespace opfuse {
namespace {

using nlohmann::json;

constexpr char kMagic[8] = {'O', 'P', 'F', 'U', 'S', 'E', 0, 1};
constexpr size_t kPage = 4096, kUnpagedAlignment = 8;
constexpr size_t kPrefix = 24;

constexpr KnownSection kSections[] = {
    {"model", 1, 1, true, "0.2.0", false},     // target, features, inputs, outputs, constraints
    {"program", 1, 3, true, "0.2.0", false},   // buffers, launches, bodies; 1: two kinds of loops; 3: routines
    {"variants", 1, 3, true, "0.2.0", false},  // programs for given sizes
    {"notes", 1, 1, false, "0.2.0", false},    // what the compiler remarked
    {"plan", 1, 1, false, "0.2.0", false},     // the fusion plan it was made with
    {"code", 1, 1, true, "0.2.0", true},       // of CPUs, and the contract's hash
    {"cubins", 2, 3, true, "0.2.0", true},     // of GPUs, and the contract's hash; 3: launches have tensor maps
    {"device", 1, 2, true, "0.2.0", true},     // one for each beside the target: "device:example-npu"; 2: tensor maps
    {"prepared", 1, 1, true, "0.2.0", false},  // constants that loading makes of what "constants" has instead
    {"constants", 1, 1, true, "0.2.0", true},  // packed weights
};

size_t align_up(size_t offset, size_t alignment) { return (offset + alignment - 1) / alignment * alignment; }
size_t alignment_of(const KnownSection& known) { return known.paged ? kPage : kUnpagedAlignment; }

/// What stands behind a colon tells sections of one kind apart.
const KnownSection* find_known(std::string_view id) {
  id = id.substr(0, id.find(':'));
  const auto at = std::find_if(std::begin(kSections), std::end(kSections), [&](const auto& k) { return id == k.id; });
  return at == std::end(kSections) ? nullptr : at;
}

std::string hash_of(std::span<const uint8_t> bytes) { return hash_bytes(bytes.data(), bytes.size()).hex(); }

template <class T>
std::string_view bytes_of(const T* data, size_t bytes) {
  return {reinterpret_cast<const char*>(data), bytes};
}

void pad_to(AtomicFile& file, size_t offset) {
  static const char zeros[kPage] = {};
  while (file.written() < offset) file.write({zeros, std::min(kPage, offset - file.written())});
}

struct Entry {
  std::string id, since;
  int version = 0;
  bool required = false;
  explicit Entry(const json& j)
      : id(j.at("id")), since(j.at("since")), version(whole<int>(j.at("version"))), required(j.at("required")) {}
};

enum class Use { read, skip };

/// What this release does with a section.
Use use_of(const Entry& entry, const KnownSection* known) {
  if (known && entry.version >= known->oldest && entry.version <= known->newest) {
    if (entry.required != known->required)
      throw fail(E::bad_file, "the section '{}' is marked {}", entry.id, entry.required ? "required" : "optional");
    return Use::read;
  }
  if (!entry.required && entry.version > 0) return Use::skip;
  if (entry.version < (known ? known->oldest : 1))
    throw fail(E::bad_file, "the section '{}' has version {}, which this opfuse does not read", entry.id, entry.version)
        .hint("compile the model again with this version of opfuse");
  throw fail(E::bad_file, "the file needs opfuse {} or later: its section '{}', version {}, is not known to this one",
             entry.since, entry.id, entry.version)
      .hint(fmt::format("run it with opfuse {}, or compile the model again with this version", entry.since));
}

}  // namespace

const KnownSection& known_section(std::string_view id) {
  const KnownSection* known = find_known(id);
  OPFUSE_CHECK(known, "section '{}' is not in the table", id);
  return *known;
}

const Section* SectionFile::find(std::string_view id) const {
  const auto at = std::find_if(sections.begin(), sections.end(), [&](const Section& s) { return s.id == id; });
  return at == sections.end() ? nullptr : &*at;
}

const Section& SectionFile::at(std::string_view id) const {
  if (const Section* section = find(id)) return *section;
  throw fail(E::bad_file, "the file lacks its section '{}'", id);
}

FileHeader read_header(std::string_view file) {
  uint64_t header_bytes = 0, header_hash = 0;
  if (file.size() < kPrefix || std::memcmp(file.data(), kMagic, sizeof kMagic) != 0)
    throw fail(E::bad_file, "the file is not an .opf: it does not start as one")
        .hint("name a model NAME.onnx; only what opfuse compile wrote is an .opf");
  std::memcpy(&header_bytes, file.data() + 8, 8);
  std::memcpy(&header_hash, file.data() + 16, 8);
  if (header_bytes > file.size() - kPrefix) throw fail(E::bad_file, "the header is longer than the file (truncated?)");
  const char* text = file.data() + kPrefix;
  if (hash_bytes(text, header_bytes).low != header_hash)
    throw fail(E::bad_file, "the header's checksum does not match");
  return {json::parse(text, text + header_bytes), align_up(kPrefix + header_bytes, kPage)};
}

std::span<const uint8_t> checked_bytes(std::string_view file, size_t base, const json& place, const std::string& what) {
  const auto offset = whole<size_t>(place.at("offset")), bytes = whole<size_t>(place.at("bytes"));
  if (base > file.size() || offset > file.size() - base || bytes > file.size() - base - offset)
    throw fail(E::bad_file, "the section '{}' lies outside the file (truncated?)", what);
  const std::span<const uint8_t> span(reinterpret_cast<const uint8_t*>(file.data()) + base + offset, bytes);
  if (hash_of(span) != place.at("xxh3").get<std::string>())
    throw fail(E::bad_file, "the checksum of the section '{}' does not match: the file is damaged", what);
  return span;
}

SectionFile read_sections(std::string_view file, const FileHeader& header) {
  SectionFile result{
      whole<int>(header.json.at("format")), whole<int>(header.json.at("codegen")), header.json.at("producer"), {}, {}};
  size_t end = 0;
  for (const json& j : listed(header.json.at("sections"))) {
    const Entry entry(j);
    const KnownSection* known = find_known(entry.id);
    const Use use = use_of(entry, known);
    const std::span<const uint8_t> bytes = checked_bytes(file, header.base, j, entry.id);
    const auto offset = whole<size_t>(j.at("offset"));
    if (offset < end || (known && offset % alignment_of(*known) != 0))
      throw fail(E::bad_file, "the section '{}' begins within another one, or not where it has to", entry.id);
    end = offset + bytes.size();
    if (result.find(entry.id)) throw fail(E::bad_file, "the section '{}' is there twice", entry.id);
    if (use == Use::skip)
      result.skipped.push_back(fmt::format("'{}', version {}, of opfuse {}", entry.id, entry.version, entry.since));
    else
      result.sections.push_back({entry.id, bytes, entry.version, j.at("xxh3")});
  }
  return result;
}

void write_sections(AtomicFile& file, const SectionFile& given) {
  json table = json::array();
  size_t end = 0;
  std::vector<size_t> offsets;
  for (const Section& section : given.sections) {
    const KnownSection& known = known_section(section.id);
    offsets.push_back(align_up(end, alignment_of(known)));
    end = offsets.back() + section.bytes.size();
    table.push_back({{"id", section.id},
                     {"version", section.version > 0 ? section.version : known.newest},
                     {"required", known.required},
                     {"since", known.since},
                     {"offset", offsets.back()},
                     {"bytes", section.bytes.size()},
                     {"xxh3", section.xxh3.empty() ? hash_of(section.bytes) : section.xxh3}});
  }
  const json header = {
      {"format", given.format}, {"codegen", given.codegen}, {"producer", given.producer}, {"sections", table}};
  const std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
  const uint64_t header_bytes = text.size(), header_hash = hash_bytes(text.data(), text.size()).low;
  file.write({kMagic, sizeof kMagic});
  file.write(bytes_of(&header_bytes, 8));
  file.write(bytes_of(&header_hash, 8));
  file.write(text);
  const size_t base = align_up(file.written(), kPage);
  pad_to(file, base);
  for (size_t i = 0; i < offsets.size(); ++i) {
    pad_to(file, base + offsets[i]);
    file.write(bytes_of(given.sections[i].bytes.data(), given.sections[i].bytes.size()));
  }
}

}  // namespace opfuse
