// Limits on what a model may make opfuse do, each with a name. What a limit stops says so and how to set it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace opfuse {

struct Limits {
#define OPFUSE_LIMIT(name, value, meaning) int64_t name = value;
#include "base/limits.def"
#undef OPFUSE_LIMIT
  bool operator==(const Limits&) const = default;
};

struct LimitRow {
  const char* name;
  int64_t value;  ///< the default
  const char* meaning;
  int64_t Limits::*field;
};
std::span<const LimitRow> limit_rows();

/// E::unknown_name, E::bad_option (below 1).
void set_limit(Limits& limits, const std::string& name, int64_t value);
Limits limits_with(const std::map<std::string, int64_t>& values);

/// "raise it with --limit NAME=N, or `limits` of the APIs"
std::string how_to_raise(const char* name);

}  // namespace opfuse
