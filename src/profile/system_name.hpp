// What the system calls itself, for reports.
#pragma once

#include <string>

namespace opfuse {

std::string system_name();  ///< "Debian GNU/Linux 12 (bookworm) (Linux 6.1.0)"

}  // namespace opfuse
