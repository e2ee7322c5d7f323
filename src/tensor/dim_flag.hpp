// How a user gives a dimension its size.
#pragma once

#include <string>

namespace opfuse {

/// The flag of the command line that fixes a dimension: --dim batch=N, in quotes where a shell needs them, since
/// exporters write names such as "past + new".
std::string dim_flag(const std::string& name);

}  // namespace opfuse
