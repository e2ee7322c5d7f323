// opfuse(1), from the tables of verbs, options and variables.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "flag_set.hpp"

namespace opfuse::cli {

/// In the language of man(7). `variables`: names and meanings.
std::string manual_page(const std::vector<FlagSet>& verbs,
                        const std::vector<std::pair<std::string, std::string>>& variables);

}  // namespace opfuse::cli
