// How a kernel is computed: the skeleton whose loop nest it is, and that skeleton's numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opfuse {

/// Tile sizes, unrolls, parts: a value. Keys are the skeleton's own ("tile_w", "parts_o", ...).
struct Schedule {
  std::string skeleton;  ///< a name of the generator's table (kernel/skeleton.hpp); empty: none was chosen
  std::vector<std::pair<std::string, int64_t>> knobs;
  int64_t get(std::string_view key, int64_t fallback) const;
  void set(std::string_view key, int64_t value);
  std::string text() const;  ///< "nv=2 tile_w=14": the numbers, by name
  bool operator==(const Schedule&) const = default;
};

}  // namespace opfuse
