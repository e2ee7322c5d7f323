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
#include "base/free_memory.hpp"
#include "base/read_files.hpp"

namespace opfuse {
namespace {

/// Files that are mapped now.
struct Mapped {
  std::mutex mutex;
  std::map<const char*, size_t> sizes;
};

Mapped& mapped() {
  static auto* const all = new Mapped;  // outlives files that static objects hold
  return *all;
}

}  // namespace

void release_file_pages() {
  const std::lock_guard lock(mapped().mutex);
  for (const auto& [data, size] : mapped().sizes) madvise(const_cast<char*>(data), size, MADV_DONTNEED);
}

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
    const std::lock_guard lock(mapped().mutex);
    mapped().sizes[static_cast<const char*>(data)] = size;
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const char*>(data), size));
}

MappedFile::~MappedFile() {
  if (size_ == 0) return;
  const std::lock_guard lock(mapped().mutex);
  mapped().sizes.erase(data_);
  munmap(const_cast<char*>(data_), size_);
}

}  // namespace opfuse
