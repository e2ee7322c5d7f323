// Suggestions for mistyped names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace opfuse {

/// Levenshtein distance.
size_t edit_distance(std::string_view a, std::string_view b);

/// The closest candidate when it is close enough to be meant, else "". Ties: the first in the list.
std::string closest_name(std::string_view name, const std::vector<std::string>& candidates);

/// "did you mean \"relu\"?", or "known: a, b, c" when nothing is close and the list is short, else "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace opfuse
