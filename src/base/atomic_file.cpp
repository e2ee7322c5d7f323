// mkstemp beside the target, then rename: the two names are on one file system, so the rename is atomic.
#include "base/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/fail.hpp"
#include "base/read_files.hpp"

namespace opfuse {
namespace {

mode_t default_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  if (const std::string input = read_as(path_); !input.empty())
    throw fail(E::bad_option, "writing \"{}\" would replace the input \"{}\"", path_, input)
        .file(path_)
        .hint("name another file to write");
  struct stat info {};
  if (stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    if (S_ISDIR(info.st_mode)) throw fail(E::file_write_failed, "\"{}\" is a directory", path_).file(path_);
    file_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    temporary_ = path_ + ".XXXXXX";
    file_ = mkostemp(temporary_.data(), O_CLOEXEC);
    if (file_ >= 0) fchmod(file_, default_mode());
  }
  if (file_ < 0) {
    temporary_.clear();
    refuse("cannot create");
  }
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) ::close(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::refuse(const char* what) const {
  throw fail(E::file_write_failed, "{} \"{}\": {}", what, path_, std::strerror(errno))
      .file(path_)
      .hint("does the folder exist, is there space, may you write there? No partial file is left");
}

void AtomicFile::write(std::string_view bytes) {
  constexpr size_t kPiece = size_t{1} << 30;  // Linux writes at most 2 GB at a time
  written_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t done = ::write(file_, bytes.data(), std::min(bytes.size(), kPiece));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) refuse("cannot write");
    bytes.remove_prefix(static_cast<size_t>(done));
  }
}

void AtomicFile::commit() {
  const int result = ::close(file_);
  file_ = -1;
  if (result != 0) refuse("cannot write");
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) refuse("cannot replace");
  temporary_.clear();
}

}  // namespace opfuse
