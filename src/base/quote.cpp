// Quoting. Bytes above 0x7f stay as they are (UTF-8 names stay readable); control bytes become escapes.
#include "base/quote.hpp"

#include <fmt/format.h>

namespace opfuse {

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

std::optional<std::string> unquote(std::string_view text, size_t& at) {
  auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  std::string out;
  for (++at; at < text.size(); ++at) {
    if (text[at] == '"') {
      ++at;
      return out;
    }
    if (text[at] != '\\') {
      out += text[at];
      continue;
    }
    if (++at >= text.size()) return std::nullopt;
    if (text[at] == '"' || text[at] == '\\') {
      out += text[at];
    } else if (text[at] == 'n') {
      out += '\n';
    } else if (text[at] == 'x' && at + 2 < text.size() && digit(text[at + 1]) >= 0 && digit(text[at + 2]) >= 0) {
      out += static_cast<char>(digit(text[at + 1]) * 16 + digit(text[at + 2]));
      at += 2;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace opfuse
