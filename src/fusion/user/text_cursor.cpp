// Numbers are read the same way in every locale.
#include "fusion/user/text_cursor.hpp"

#include <charconv>

namespace opfuse {

bool TextCursor::number(double& value) {
  if (!std::isdigit(static_cast<unsigned char>(peek())) && peek() != '.') return false;
  const char* const begin = text_.data() + pos_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (error != std::errc()) return false;
  pos_ += static_cast<size_t>(end - begin);
  return true;
}

}  // namespace opfuse
