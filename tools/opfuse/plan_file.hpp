// Plans that --plan and diff name.
#pragma once

#include <string>

#include "fusion/plan.hpp"

namespace opfuse::cli {

FusionPlan read_plan(const std::string& path);  ///< E::file_not_found, E::bad_file with the path

}  // namespace opfuse::cli
