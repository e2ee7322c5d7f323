// One command has one set of limits, whatever models it reads.
#include "limits_flag.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "inputs.hpp"

namespace opfuse::cli {

static std::vector<std::string>& given() {
  static std::vector<std::string> arguments;
  return arguments;
}

Limits given_limits() {
  Limits limits;
  for (const std::string& text : given()) {
    const auto [name, value] = split_pair(text, '=', "--limit", "NAME=N");
    set_limit(limits, name, parse_size(value, "--limit " + text));
  }
  return limits;
}

void add_limit_flag(FlagSet& app) {
  const std::vector<OptionRow> rows = app.rows();
  if (std::none_of(rows.begin(), rows.end(), [](const OptionRow& r) { return r.positional && r.name == "MODEL"; }))
    return;
  std::vector<std::string> defaults;
  for (const LimitRow& row : limit_rows()) defaults.push_back(fmt::format("{}={}", row.name, row.value));
  app.add_option(
         "--limit", given(),
         fmt::format("override a limit on what a model may need (repeatable); defaults: {}", fmt::join(defaults, ", ")))
      ->type_name("NAME=N")
      ->allow_extra_args(false);
}

}  // namespace opfuse::cli
