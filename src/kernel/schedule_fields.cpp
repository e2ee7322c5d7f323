// A schedule's numbers against the fields of its skeleton.
#include "kernel/schedule_fields.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace opfuse {

void FieldCheck::field(std::string_view name, bool required, Range range) {
  known_.push_back(name);
  const int64_t* value = schedule_.find(name);
  if (!why_.empty() || (!value && !required)) return;
  if (!value)
    why_ = fmt::format("{} is missing", name);
  else if (*value < range.least)
    why_ = fmt::format("{}={} is less than {}", name, *value, range.least);
  else if (*value > range.most)
    why_ = fmt::format("{}={} is more than {}", name, *value, range.most);
}

std::optional<std::string> FieldCheck::result() const {
  if (!why_.empty()) return why_;
  for (const auto& [name, value] : schedule_.knobs)
    if (std::find(known_.begin(), known_.end(), name) == known_.end())
      return fmt::format("{} is not a number of its schedules", name);
  return std::nullopt;
}

}  // namespace opfuse
