// The container of an .opf: a table of sections in front of their bytes.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.hpp"

namespace opfuse {

/// A kind of section that this release writes and reads.
struct KnownSection {
  const char* id;
  int oldest, newest;  ///< versions that are read; the newest is written
  bool required;       ///< who does not know it refuses the file; otherwise skips it
  const char* since;   ///< the first release that reads the newest version
  bool paged;          ///< begins on a page: mapped as it is
};
const KnownSection& known_section(std::string_view id);

struct Section {
  std::string id;
  std::span<const uint8_t> bytes;
  int version = 0;   ///< 0: the newest
  std::string xxh3;  ///< of the bytes; empty: to be computed
};

struct SectionFile {
  int format = 0, codegen = 0;
  std::string producer;
  std::vector<Section> sections;
  std::vector<std::string> skipped;  ///< optional sections of later releases, in words
  /// E::bad_file when there is none.
  const Section& at(std::string_view id) const;
  const Section* find(std::string_view id) const;
};

/// The JSON header in front of everything, in this format and those before; `base` is where its offsets count from.
struct FileHeader {
  nlohmann::json json;
  size_t base = 0;
};
FileHeader read_header(std::string_view file);

/// The bytes [offset, offset + bytes) behind the header, where a checksum holds. E::bad_file.
std::span<const uint8_t> checked_bytes(std::string_view file, size_t base, const nlohmann::json& place,
                                       const std::string& what);

/// E::bad_file for sections outside the file, damaged, given twice or out of order, and for required ones that this
/// release does not know: the message names the release that does.
SectionFile read_sections(std::string_view file, const FileHeader& header);
void write_sections(AtomicFile& file, const SectionFile& sections);

}  // namespace opfuse
