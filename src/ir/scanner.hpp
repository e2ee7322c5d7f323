// Characters, tokens and positions of the text form.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "base/fail.hpp"
#include "tensor/tensor.hpp"

namespace opfuse {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  /// Throws E::bad_text with line and column of the next token.
  [[noreturn]] void stop(std::string message);
  [[noreturn]] void expected(std::string_view what);
  /// Runs f; an error it throws is said to come from the line of `here`.
  template <class F>
  auto located(size_t here, F&& f) {
    try {
      return f();
    } catch (Error& error) {
      throw error.during(fmt::format("reading line {}", line_of(here)));
    }
  }

  void skip();  ///< blanks and // comments
  bool at_end();
  bool peek(char c);
  bool take(char c);
  void need(char c);
  bool take_word(std::string_view word);  ///< a whole identifier
  std::string word();                     ///< letters, digits, "_.-"; may be empty
  std::string identifier();               ///< a word or a quoted string
  std::string quoted();
  std::string value_ref();    ///< "%name", "%12" or %"name"; the text as printed
  std::string_view number();  ///< the characters of a number
  std::string_view type();    ///< "f32[...]"
  TensorType tensor_type();
  size_t position() const { return at_; }
  void rewind(size_t position) { at_ = position; }

 private:
  std::string_view text_;
  size_t at_ = 0;
  size_t line_of(size_t position) const;
};

}  // namespace opfuse
