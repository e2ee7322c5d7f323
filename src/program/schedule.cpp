// Schedule: a skeleton and an ordered list of named integers, as a value and as text.
#include "program/schedule.hpp"

#include <algorithm>
#include <charconv>

#include "base/fail.hpp"

namespace opfuse {
namespace {

int64_t parse_number(std::string_view digits, std::string_view word) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size())
    throw fail(E::bad_text, "'{}' in a schedule is not of the form NAME=INTEGER", word);
  return value;
}

}  // namespace

const int64_t* Schedule::find(std::string_view key) const {
  for (const auto& [name, value] : knobs)
    if (name == key) return &value;
  return nullptr;
}

int64_t Schedule::get(std::string_view key, int64_t fallback) const {
  const int64_t* found = find(key);
  return found ? *found : fallback;
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
  std::string text = skeleton;
  for (const auto& [name, value] : sorted) text += (text.empty() ? "" : " ") + name + "=" + std::to_string(value);
  return text;
}

Schedule parse_schedule(std::string_view text) {
  Schedule schedule;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos && schedule.skeleton.empty() && schedule.knobs.empty()) {
      schedule.skeleton = word;
      continue;
    }
    if (equals == 0 || equals == std::string_view::npos)
      throw fail(E::bad_text, "'{}' in a schedule is not of the form NAME=INTEGER", word);
    const std::string_view name = word.substr(0, equals);
    if (schedule.find(name)) throw fail(E::bad_text, "{} stands twice in a schedule", name);
    schedule.set(name, parse_number(word.substr(equals + 1), word));
  }
  return schedule;
}

}  // namespace opfuse
