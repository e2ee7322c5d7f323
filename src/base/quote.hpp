// Strings in text formats: "a \"quoted\" name\n", any byte survives (\xNN).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace opfuse {

std::string quote(std::string_view text);

/// Parses a quoted string that starts at text[at] (a '"'); moves `at` behind it. Null when it does not
/// end or has an unknown escape.
std::optional<std::string> unquote(std::string_view text, size_t& at);

}  // namespace opfuse
