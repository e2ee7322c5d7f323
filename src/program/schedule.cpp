// Schedule: a skeleton and an ordered list of named integers.
#include "program/schedule.hpp"

#include <algorithm>

namespace opfuse {

int64_t Schedule::get(std::string_view key, int64_t fallback) const {
  for (const auto& [name, value] : knobs)
    if (name == key) return value;
  return fallback;
}

void Schedule::set(std::string_view key, int64_t value) {
  for (auto& [name, old] : knobs)
    if (name == key) {
      old = value;
      return;
    }
  knobs.emplace_back(key, value);
}

std::string Schedule::text() const {
  auto sorted = knobs;
  std::sort(sorted.begin(), sorted.end());
  std::string text;
  for (const auto& [name, value] : sorted) text += (text.empty() ? "" : " ") + name + "=" + std::to_string(value);
  return text;
}

}  // namespace opfuse
