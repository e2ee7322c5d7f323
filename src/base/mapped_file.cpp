// mmap of a whole regular file. The mapping is private and read-only; whoever shortens the file while it is mapped gets
// what POSIX says (SIGBUS), so models must be replaced by renaming, as AtomicFile does.
#include "base/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "base/fail.hpp"
#include "base/read_files.hpp"

namespace opfuse {
namespace {

struct Mappings {
  std::mutex mutex;
  std::map<const char*, size_t> sizes;  ///< by where they begin
};

/// Never destroyed: files may outlive what is static.
Mappings& mappings() {
  static auto& all = *new Mappings;
  return all;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path, bool whole) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) throw fail(E::file_not_found, "cannot open \"{}\": {}", path, std::strerror(errno)).file(path);
  struct stat info {};
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(file);
    throw fail(E::file_not_found, "\"{}\" is not a regular file", path).file(path);
  }
  remember_read_file(path);
  const size_t size = static_cast<size_t>(info.st_size);
  void* data = nullptr;
  if (size > 0) data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | (whole ? MAP_POPULATE : 0), file, 0);
  const int error = errno;
  close(file);
  if (data == MAP_FAILED) throw fail(E::file_not_found, "cannot map \"{}\": {}", path, std::strerror(error)).file(path);
  if (size > 0) {
    const std::scoped_lock lock(mappings().mutex);
    mappings().sizes[static_cast<const char*>(data)] = size;
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const char*>(data), size));
}

MappedFile::~MappedFile() {
  if (size_ == 0) return;
  const std::scoped_lock lock(mappings().mutex);
  mappings().sizes.erase(data_);
  munmap(const_cast<char*>(data_), size_);
}

void MappedFile::release_pages() {
  const std::scoped_lock lock(mappings().mutex);
  for (const auto& [data, size] : mappings().sizes)
    madvise(const_cast<char*>(data), size, MADV_DONTNEED);  // advice only: failure is harmless
}

}  // namespace opfuse
