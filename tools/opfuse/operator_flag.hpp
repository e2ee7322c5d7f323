// --operator TEXT|FILE of every verb that reads a model (onnx/expression_operator.hpp).
#pragma once

#include <string>
#include <vector>

#include "flag_set.hpp"

namespace opfuse::cli {

/// Of this command.
const std::vector<std::string>& given_operators();

/// Added to verbs with a model.
void add_operator_flag(FlagSet& app);

}  // namespace opfuse::cli
