#include "base/file_bytes.hpp"

#include <fstream>
#include <sstream>

namespace opfuse {

std::optional<std::string> file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream bytes;
  bytes << in.rdbuf();  // blocks: std::istreambuf_iterator takes byte by byte
  if (bytes.bad()) return std::nullopt;
  return std::move(bytes).str();
}

}  // namespace opfuse
