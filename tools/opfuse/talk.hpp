// What is said on stderr beside errors and warnings: files written, what to do next, notes, progress. -q silences it.
#pragma once

#include <string>

#include "flag_set.hpp"

namespace opfuse::cli {

void say(const std::string& text);
/// The same for words that -q keeps: warnings, failures. The command succeeds even where stderr cannot be written.
void tell(const std::string& text);  ///< a line
bool is_quiet();
/// -q, --quiet: of every verb.
void add_quiet_flag(FlagSet& app);

}  // namespace opfuse::cli
