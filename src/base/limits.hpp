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
  int64_t most;  ///< the highest value that may be set
};
std::span<const LimitRow> limit_rows();

/// E::unknown_name, E::bad_option (below 1, or above `most`).
void set_limit(Limits& limits, const std::string& name, int64_t value);
Limits limits_with(const std::map<std::string, int64_t>& values);

/// The limits of the innermost scope of this thread, else the defaults: for what computes with dimensions and types,
/// which nobody hands any options. parallel_for takes them along.
const Limits& limits_in_force();
class LimitScope {
 public:
  explicit LimitScope(const Limits& limits);  ///< which lives longer than the scope
  ~LimitScope();
  LimitScope(const LimitScope&) = delete;
  LimitScope& operator=(const LimitScope&) = delete;

 private:
  const Limits* outer_;
};

/// "raise it with --limit NAME=N, or `limits` of the APIs"
std::string how_to_raise(const char* name);

}  // namespace opfuse
