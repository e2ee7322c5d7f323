// Attributes by name, and their text. A real always shows a point, an exponent, inf or nan, so that
// integers and reals stay apart.
#include "ir/attrs.hpp"

#include <fmt/format.h>

#include "base/quote.hpp"

namespace opfuse {

namespace {

std::string text(int64_t v) { return fmt::format("{}", v); }
std::string text(bool v) { return v ? "true" : "false"; }
std::string text(const std::string& v) { return quote(v); }
std::string text(DType v) { return std::string(name_of(v)); }
std::string text(double v) {
  std::string s = fmt::format("{}", v);
  return s.find_first_of(".en") == std::string::npos ? s + ".0" : s;
}

template <class T>
std::string text(const std::vector<T>& list) {
  std::string out = "[";
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ',';
    out += text(list[i]);
  }
  return out + "]";
}

}  // namespace

const AttrValue* find(const AttrMap& attrs, std::string_view name) {
  for (const auto& [key, value] : attrs) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::string text_of(const AttrValue& value) {
  return std::visit([](const auto& v) { return text(v); }, value);
}

}  // namespace opfuse
