// Flags of neighbouring tools (trtexec, Polygraphy), accepted so that scripts port over; each use is noted on stderr.
#pragma once

#include <string>
#include <vector>

namespace opfuse::cli {

/// The arguments with foreign flags replaced by opfuse's own. `--name=value` and `--name value` both work.
std::vector<std::string> port_foreign_flags(const std::vector<std::string>& arguments);

}  // namespace opfuse::cli
