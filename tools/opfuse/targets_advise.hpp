// opfuse targets advise: what a target lacks for a model.
#pragma once

#include <string>

#include "inputs.hpp"

namespace opfuse::cli {

int advise_target(const std::string& model, const std::string& target, const DimensionFlags& dimensions, bool json);

}  // namespace opfuse::cli
