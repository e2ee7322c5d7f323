#include "quantize/file_mark.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/hash.hpp"

namespace opfuse::quantization {

std::string file_mark(const std::string& path) {
  constexpr std::streamoff kEnd = 4096;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = std::max<std::streamoff>(file.tellg(), 0);
  std::string ends(static_cast<size_t>(std::min(size, 2 * kEnd)), '\0');
  const std::streamoff first = static_cast<std::streamoff>(ends.size()) / 2,
                       last = static_cast<std::streamoff>(ends.size()) - first;
  file.seekg(0).read(ends.data(), first);
  file.seekg(size - last).read(ends.data() + first, last);
  return fmt::format("{}:{}:{}", std::filesystem::path(path).filename().string(), size, hash_text(ends).hex());
}

}  // namespace opfuse::quantization
