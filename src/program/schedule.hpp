// How a kernel is computed: the skeleton whose loop nest it is, and that skeleton's numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opfuse {

/// Tile sizes, unrolls, parts: a value. Which numbers there are, and what they may be, is the skeleton's affair
/// (kernel/schedule_fields.hpp).
struct Schedule {
  std::string skeleton;  ///< a name of the generator's table (kernel/skeleton.hpp); empty: none was chosen
  std::vector<std::pair<std::string, int64_t>> knobs;
  const int64_t* find(std::string_view key) const;  ///< null: it is left out
  int64_t get(std::string_view key, int64_t fallback) const;
  void set(std::string_view key, int64_t value);
  std::string text() const;  ///< "contraction nv=2 tile_w=14": the skeleton and the numbers, by name
  bool operator==(const Schedule&) const = default;
};

/// The schedule of such a text; E::bad_text names the word that is wrong.
Schedule parse_schedule(std::string_view text);

}  // namespace opfuse
