// From uname and /etc/os-release; what cannot be read is unknown.
#include "profile/system_name.hpp"

#include <fmt/core.h>
#include <sys/utsname.h>

#include <fstream>

namespace opfuse {

std::string system_name() {
  utsname name{};
  uname(&name);
  std::string release = "unknown distribution";
  std::ifstream file("/etc/os-release");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("PRETTY_NAME=", 0) == 0) release = line.substr(13, line.size() - 14);
  return fmt::format("{} ({} {})", release, name.sysname, name.release);
}

}  // namespace opfuse
