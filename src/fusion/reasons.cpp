// reasons.def as a table.
#include "fusion/reasons.hpp"

namespace opfuse {
namespace {

constexpr Reason kReasons[] = {
#define OPFUSE_REASON(code, meaning, change) {#code, meaning, change},
#define OPFUSE_REASON_OF_SETTING(code, meaning, change) {#code, meaning, change, true},
#include "fusion/reasons.def"
#undef OPFUSE_REASON
#undef OPFUSE_REASON_OF_SETTING
};

/// As one word of a command.
std::string shell_quoted(const std::string& name) {
  const bool plain = !name.empty() && name.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_./:-@#") == std::string::npos;
  if (plain && name[0] != '-' && name[0] != '#') return name;
  std::string quoted = "'";
  for (const char c : name) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

void fill(std::string& text, std::string_view hole, const std::string& with) {
  for (size_t at = text.find(hole); at != std::string::npos; at = text.find(hole, at + with.size()))
    text.replace(at, hole.size(), with);
}

}  // namespace

std::span<const Reason> reasons() { return kReasons; }

const Reason* find_reason(std::string_view code) {
  for (const Reason& reason : kReasons)
    if (reason.code == code) return &reason;
  return nullptr;
}

bool is_of_setting(std::string_view code) {
  const Reason* reason = find_reason(code);
  return reason && reason->of_setting;
}

std::string change_for(const EdgeVerdict& edge) {
  const Reason* reason = find_reason(edge.decline.code);
  if (!reason || reason->change.empty()) return kNoChangeFlips;
  if (edge.price && !edge.price->joined && !reason->of_setting) return kNoChangeFlips;  // it is illegal
  std::string change(reason->change);
  fill(change, "{producer}", shell_quoted(edge.producer));
  fill(change, "{consumer}", shell_quoted(edge.consumer));
  return change;
}

}  // namespace opfuse
