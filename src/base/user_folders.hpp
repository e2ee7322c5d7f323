// Where a user's files go that nobody named a place for.
#pragma once

#include <string>

namespace opfuse {

/// $XDG_STATE_HOME/opfuse, else ~/.local/state/opfuse, else a folder of the user's below the system's temporary one.
std::string state_folder();

}  // namespace opfuse
