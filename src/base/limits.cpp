// One row a limit, from limits.def.
#include "base/limits.hpp"

#include <fmt/format.h>

#include <vector>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"

namespace opfuse {

std::span<const LimitRow> limit_rows() {
  static constexpr LimitRow kRows[] = {
#define OPFUSE_LIMIT(name, value, meaning) {#name, value, meaning, &Limits::name},
#include "base/limits.def"
#undef OPFUSE_LIMIT
  };
  return kRows;
}

void set_limit(Limits& limits, const std::string& name, int64_t value) {
  std::vector<std::string> names;
  for (const LimitRow& row : limit_rows()) {
    names.emplace_back(row.name);
    if (name != row.name) continue;
    if (value < 1) throw fail(E::bad_option, "limit {}={}: at least 1", name, value);
    limits.*row.field = value;
    return;
  }
  throw fail(E::unknown_name, "unknown limit '{}'{}", name, did_you_mean(name, names));
}

Limits limits_with(const std::map<std::string, int64_t>& values) {
  Limits limits;
  for (const auto& [name, value] : values) set_limit(limits, name, value);
  return limits;
}

std::string how_to_raise(const char* name) {
  return fmt::format("raise it with --limit {}=N, or `limits` of the APIs", name);
}

}  // namespace opfuse
