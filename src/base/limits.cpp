// One row a limit, from limits.def.
#include "base/limits.hpp"

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"

namespace opfuse {

std::span<const LimitRow> limit_rows() {
  static constexpr LimitRow kRows[] = {
#define OPFUSE_LIMIT(name, value, meaning) {#name, value, meaning, &Limits::name, std::numeric_limits<int64_t>::max()},
#define OPFUSE_DEEP_LIMIT(name, value, most, meaning) {#name, value, meaning, &Limits::name, most},
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
    if (value > row.most)
      throw fail(E::bad_option, "limit {}={}: at most {}, a thread's stack ends there", name, value, row.most);
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

static thread_local const Limits* in_force = nullptr;

const Limits& limits_in_force() {
  static const Limits defaults;
  return in_force ? *in_force : defaults;
}

LimitScope::LimitScope(const Limits& limits) : outer_(in_force) { in_force = &limits; }
LimitScope::~LimitScope() { in_force = outer_; }

std::string how_to_raise(const char* name) {
  return fmt::format("raise it with --limit {}=N, or `limits` of the APIs", name);
}

}  // namespace opfuse
