// A file in memory, mapped read-only. Tensors that point into it keep it alive.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace opfuse {

class MappedFile {
 public:
  /// E::file_not_found when it cannot be opened or is not a regular file. `whole`: all of it will be read soon.
  static std::shared_ptr<const MappedFile> open(const std::string& path, bool whole = false);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {data_, size_}; }

 private:
  MappedFile(const char* data, size_t size) : data_(data), size_(size) {}
  const char* data_;
  size_t size_;
};

}  // namespace opfuse
