// A scanner without lookahead tables: each question looks at the characters it needs.
#include "ir/scanner.hpp"

#include <algorithm>
#include <cctype>

#include "base/quote.hpp"

namespace opfuse {

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-'; }

}  // namespace

size_t Scanner::line_of(size_t position) const {
  const size_t end = std::min(position, text_.size());
  return 1 + static_cast<size_t>(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
}

void Scanner::stop(std::string message) {
  const size_t end = std::min(at_, text_.size());
  const size_t start = end == 0 ? std::string_view::npos : text_.rfind('\n', end - 1);
  const size_t column = end - (start == std::string_view::npos ? 0 : start + 1) + 1;
  throw fail(E::bad_text, "line {}, column {}: {}", line_of(end), column, message);
}

void Scanner::expected(std::string_view what) {
  skip();
  std::string found = "the end of the text";
  if (at_ < text_.size()) found = quote(text_.substr(at_, std::min<size_t>(12, text_.substr(at_).find('\n'))));
  stop(fmt::format("expected {}, found {}", what, found));
}

void Scanner::skip() {
  while (at_ < text_.size()) {
    if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

bool Scanner::at_end() {
  skip();
  return at_ >= text_.size();
}

bool Scanner::peek(char c) {
  skip();
  return at_ < text_.size() && text_[at_] == c;
}

bool Scanner::take(char c) {
  if (!peek(c)) return false;
  ++at_;
  return true;
}

void Scanner::need(char c) {
  if (!take(c)) expected(fmt::format("'{}'", c));
}

std::string Scanner::word() {
  skip();
  const size_t first = at_;
  while (at_ < text_.size() && is_word(text_[at_])) ++at_;
  return std::string(text_.substr(first, at_ - first));
}

bool Scanner::take_word(std::string_view wanted) {
  skip();
  const size_t here = at_;
  if (word() == wanted) return true;
  at_ = here;
  return false;
}

std::string Scanner::quoted() {
  if (!peek('"')) expected("a quoted string");
  const size_t here = at_;
  auto text = unquote(text_, at_);
  if (!text) {
    at_ = here;
    stop("this quoted string does not end or has an unknown escape");
  }
  return *text;
}

std::string Scanner::identifier() {
  if (peek('"')) return quoted();
  std::string name = word();
  if (name.empty()) expected("a name");
  return name;
}

std::string Scanner::value_ref() {
  if (!take('%')) expected("a value such as %x");
  if (at_ < text_.size() && text_[at_] == '"') {
    const std::string name = quoted();
    if (name.empty()) stop("a value has a name");
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) { return is_word(c) || c == '/'; });
    const bool digits = std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    return "%" + (plain && !digits ? name : quote(name));  // %"a" and %a are one value, %"1" and %1 are not
  }
  const size_t first = at_;
  while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '/')) ++at_;
  if (at_ == first) expected("a value name after %");
  return "%" + std::string(text_.substr(first, at_ - first));
}

std::string_view Scanner::number() {
  skip();
  const size_t first = at_;
  while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '+')) ++at_;
  return text_.substr(first, at_ - first);
}

std::string_view Scanner::type() {
  skip();
  const size_t first = at_;
  while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_]))) ++at_;
  if (at_ == first || at_ >= text_.size() || text_[at_] != '[') expected("a type such as f32[1,3]");
  for (bool in_quotes = false; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
    if (in_quotes && text_[at_] == '\\') {
      ++at_;
    } else if (text_[at_] == '"') {
      in_quotes = !in_quotes;
    } else if (!in_quotes && text_[at_] == ']') {
      ++at_;
      return text_.substr(first, at_ - first);
    }
  }
  at_ = first;
  stop("this type has no closing ']'");
}

TensorType Scanner::tensor_type() {
  skip();
  const size_t here = at_;
  const std::string_view text = type();
  try {
    return parse_type(text);
  } catch (const Error& error) {
    at_ = here;
    stop(error.diagnostic().message);
  }
}

}  // namespace opfuse
