// A file as a whole, of any kind: pipes too.
#pragma once

#include <optional>
#include <string>

namespace opfuse {

/// None where it cannot be opened or read, as a folder cannot. The file is not remembered as input
/// (base/read_files.hpp).
std::optional<std::string> file_bytes(const std::string& path);

}  // namespace opfuse
