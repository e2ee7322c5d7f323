// Reading small languages: a position in a text, and errors that say line and column of the file around it.
#pragma once

#include <cctype>
#include <string>
#include <string_view>

#include "base/fail.hpp"
#include "fusion/user/condition.hpp"

namespace opfuse {

class TextCursor {
 public:
  TextCursor(std::string_view text, TextPlace at) : text_(text), at_(std::move(at)) {}

  size_t position() const { return pos_; }
  /// What was read since `begin`, without spaces at its end.
  std::string since(size_t begin) const {
    std::string_view text = text_.substr(begin, pos_ - begin);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
    return std::string(text);
  }
  bool done() const { return pos_ >= text_.size(); }
  char peek(size_t ahead = 0) const { return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0'; }
  void skip_spaces() {
    while (!done() && std::isspace(static_cast<unsigned char>(peek()))) ++pos_;
  }
  /// Takes `word` when it is next.
  bool take(std::string_view word) {
    if (text_.substr(pos_, word.size()) != word) return false;
    pos_ += word.size();
    return true;
  }
  static bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  std::string name() {
    const size_t begin = pos_;
    while (in_name(peek())) ++pos_;
    return std::string(text_.substr(begin, pos_ - begin));
  }
  /// A decimal number without sign (3, .5, 1e-3) when one is next that a double can hold; nothing is taken otherwise.
  bool number(double& value);

  template <class... Args>
  Error error(size_t position, fmt::format_string<Args...> format, Args&&... args) const {
    size_t line = at_.line, column = at_.column;
    for (size_t i = 0; i < position && i < text_.size(); ++i) {
      ++column;
      if (text_[i] == '\n') ++line, column = 1;
    }
    return fail(E::bad_file, "{}:{}:{}: {}", at_.file, line, column, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::string_view text_;
  TextPlace at_;
  size_t pos_ = 0;
};

}  // namespace opfuse
