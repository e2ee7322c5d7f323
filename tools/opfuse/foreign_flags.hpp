// Flags of trtexec and Polygraphy, accepted so that scripts port over. Those with a counterpart are further names of
// the option itself (see its add_option); here is the rest.
#pragma once

#include <string>
#include <vector>

#include "flag_set.hpp"

namespace opfuse::cli {

/// `--onnx FILE` and `--loadEngine FILE` as MODEL; a positional argument has one name only.
std::vector<std::string> with_model_as_argument(const std::vector<std::string>& arguments);

/// What has no effect here, hidden from --help and noted on stderr, and what another verb has.
void add_foreign_flags(FlagSet& app);

}  // namespace opfuse::cli
