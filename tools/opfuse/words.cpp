// A terminal that does not know its width (0) cuts nothing.
#include "words.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace opfuse::cli {

std::string counted(size_t count, const std::string& noun) {
  const char* plural = noun.ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : plural);
}

static size_t terminal_columns() {
  winsize size{};
  if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

std::string fitted(const std::string& line) {
  static const size_t columns = terminal_columns();
  constexpr size_t kLeast = 40;
  if (columns < kLeast || line.size() <= columns) return line;
  size_t end = columns - 3;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;  // not within a character of UTF-8
  return line.substr(0, end) + "...";
}

}  // namespace opfuse::cli
