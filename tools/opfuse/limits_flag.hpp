// --limit NAME=N of every verb that reads a model (base/limits.hpp).
#pragma once

#include "base/limits.hpp"
#include "flag_set.hpp"

namespace opfuse::cli {

/// Of this command. E::unknown_name, E::bad_option.
Limits given_limits();

/// Added to verbs with a MODEL.
void add_limit_flag(FlagSet& app);

}  // namespace opfuse::cli
