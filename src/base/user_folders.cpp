// The XDG base directory specification: relative paths in its variables are ignored.
#include "base/user_folders.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace opfuse {

std::string state_folder() {
  if (const char* xdg = std::getenv("XDG_STATE_HOME"); xdg && *xdg == '/') return std::string(xdg) + "/opfuse";
  if (const char* home = std::getenv("HOME"); home && *home == '/') return std::string(home) + "/.local/state/opfuse";
  std::error_code error;
  const std::filesystem::path temporary = std::filesystem::temp_directory_path(error);
  return (error ? std::string("/tmp") : temporary.string()) + "/opfuse-state-" + std::to_string(::getuid());
}

}  // namespace opfuse
