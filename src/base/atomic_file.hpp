// A file that appears complete or not at all.
#pragma once

#include <string>
#include <string_view>

namespace opfuse {

/// Writes into a temporary file beside `path`; commit() renames it, so that readers of an older file keep theirs. What
/// is not committed is removed. A path that is a device or a pipe is written directly. Throws E::file_write_failed, and
/// E::bad_option for a file that was read (base/read_files.hpp).
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  size_t written() const { return written_; }
  void commit();

 private:
  [[noreturn]] void refuse(const char* what) const;
  std::string path_, temporary_;
  int file_ = -1;
  size_t written_ = 0;
};

}  // namespace opfuse
