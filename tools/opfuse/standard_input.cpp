// Readers of models map files, so that weights stay where they are, and some read a file twice: what comes from a pipe
// is kept in memory under a path of its own (memfd_create). Weights beside a model are not found from there.
#include "standard_input.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/fail.hpp"

namespace opfuse::cli {
namespace {

void write_all(int file, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = ::write(file, data, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw fail(E::out_of_memory, "standard input cannot be kept: {}", std::strerror(errno));
    data += written;
    bytes -= static_cast<size_t>(written);
  }
}

std::string keep_standard_input() {
  if (isatty(STDIN_FILENO))
    throw fail(E::bad_option, "'-' is standard input, and that is a terminal")
        .hint("write opfuse VERB - < MODEL.onnx, or name the file");
  const int file = memfd_create("opfuse-stdin", MFD_CLOEXEC);
  if (file < 0) throw fail(E::out_of_memory, "standard input cannot be kept: {}", std::strerror(errno));
  static std::array<char, 1 << 16> buffer;
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw fail(E::file_not_found, "cannot read standard input: {}", std::strerror(errno));
    if (got == 0) break;
    write_all(file, buffer.data(), static_cast<size_t>(got));
  }
  return fmt::format("/proc/self/fd/{}", file);
}

}  // namespace

bool is_standard_input(const std::string& argument) {
  return argument == "-" || argument == "/dev/stdin" || argument == "/proc/self/fd/0" || argument == "/dev/fd/0";
}

const std::string& file_of_standard_input() {
  static const std::string path = keep_standard_input();
  return path;
}

const std::string& path_of(const std::string& argument) {
  return is_standard_input(argument) ? file_of_standard_input() : argument;
}

}  // namespace opfuse::cli
