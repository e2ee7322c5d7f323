// A folder that lives as long as a test.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "base/file_bytes.hpp"
#include "base/temporary_folder.hpp"

namespace opfuse::test {

class TemporaryFolder : public opfuse::TemporaryFolder {
 public:
  std::string write(const std::string& file, const std::string& bytes) const {
    std::ofstream(path(file), std::ios::binary) << bytes;
    return path(file);
  }
  std::string read(const std::string& file) const { return file_bytes(path(file)).value_or(""); }
  size_t file_count() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path(".")), {}));
  }
};

}  // namespace opfuse::test
