// An .opf taken apart into the table and the bytes of its sections, and put together again with checksums that hold.
#pragma once

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.hpp"

namespace opfuse {

struct OpfFile {
  nlohmann::json table;
  std::vector<std::string> sections;  ///< bytes, in the table's order

  explicit OpfFile(std::string_view bytes) {
    uint64_t size = 0;
    std::memcpy(&size, bytes.data() + 8, 8);
    table = nlohmann::json::parse(bytes.substr(24, size));
    const size_t base = (24 + size + 4095) / 4096 * 4096;
    for (const nlohmann::json& s : table.at("sections"))
      sections.emplace_back(bytes.substr(base + s.at("offset").get<size_t>(), s.at("bytes").get<size_t>()));
  }

  size_t index_of(const std::string& id) const {
    size_t at = 0;
    while (table.at("sections").at(at).at("id") != id) ++at;
    return at;
  }
  bool has(const std::string& id) const {
    for (const nlohmann::json& s : table.at("sections"))
      if (s.at("id") == id) return true;
    return false;
  }
  nlohmann::json json_of(const std::string& id) const { return nlohmann::json::parse(sections.at(index_of(id))); }
  void set(const std::string& id, const std::string& bytes) { sections.at(index_of(id)) = bytes; }
  void add(nlohmann::json entry, std::string bytes) {
    table["sections"].push_back(std::move(entry));
    sections.push_back(std::move(bytes));
  }

  /// Places, sizes and checksums follow from the bytes.
  std::string bytes() const {
    nlohmann::json placed = table;
    size_t end = 0;
    for (size_t i = 0; i < sections.size(); ++i) {
      end = (end + 4095) / 4096 * 4096;
      placed["sections"][i].update(
          {{"offset", end}, {"bytes", sections[i].size()}, {"xxh3", hash_text(sections[i]).hex()}});
      end += sections[i].size();
    }
    return bytes_with(placed);
  }

  /// With a table of which only its own checksum is right.
  std::string bytes_with(const nlohmann::json& placed) const {
    std::string payload;
    for (const std::string& section : sections) {
      payload.resize((payload.size() + 4095) / 4096 * 4096);
      payload += section;
    }
    const std::string text = placed.dump();
    const uint64_t size = text.size(), hash = hash_text(text).low;
    std::string file("OPFUSE\0\1", 8);
    file.append(reinterpret_cast<const char*>(&size), 8);
    file.append(reinterpret_cast<const char*>(&hash), 8);
    file += text;
    file.resize((file.size() + 4095) / 4096 * 4096);
    return file + payload;
  }
};

}  // namespace opfuse
