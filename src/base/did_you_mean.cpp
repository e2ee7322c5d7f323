// Suggestions by edit distance: a third of the name may be wrong.
#include "base/did_you_mean.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace opfuse {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row.back();
}

std::string closest_name(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 128;  // names of people are shorter; keeps hostile input cheap
  if (name.size() > kLongest) return {};
  size_t best = name.size() / 3 + 2;
  std::string found;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best && distance < candidate.size()) best = distance, found = candidate;
  }
  return found;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr size_t kShortList = 12;
  if (std::string close = closest_name(name, candidates); !close.empty()) {
    return fmt::format("did you mean \"{}\"?", close);
  }
  if (candidates.empty() || candidates.size() > kShortList) return {};
  return fmt::format("known: {}", fmt::join(candidates, ", "));
}

}  // namespace opfuse
