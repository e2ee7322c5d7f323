// Text of dimensions and shapes, and the parser of what it prints.
//   sum     = ["-"] product { ("+"|"-") product }
//   product = atom { ("*"|"/"|"%") atom }                      "/" rounds down
//   atom    = integer | symbol | "quoted symbol" | min(sum, sum) | max(sum, sum) | "(" sum ")"
#include <fmt/format.h>

#include <cctype>
#include <limits>

#include "base/fail.hpp"
#include "base/limits.hpp"
#include "tensor/dim.hpp"
#include "tensor/dim_node.hpp"

namespace opfuse {

namespace {

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool continues_name(char c) { return starts_name(c) || std::isdigit(static_cast<unsigned char>(c)) || c == '.'; }

std::string quoted_symbol(const std::string& name) {
  bool clean = starts_name(name[0]);
  for (char c : name) clean = clean && continues_name(c);
  if (clean) return name;
  std::string out = "\"";
  for (char c : name) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

std::string text_of(const Dim& d, bool as_factor) {
  auto wrap = [&](std::string s) { return as_factor ? "(" + s + ")" : s; };
  switch (d.op()) {
    case DimOp::constant:
      return as_factor && d.value() < 0 ? wrap(fmt::format("{}", d.value())) : fmt::format("{}", d.value());
    case DimOp::symbol:
      return quoted_symbol(d.symbol_name());
    case DimOp::add: {
      std::string out = text_of(d.args()[0], false);
      for (size_t i = 1; i < d.args().size(); ++i) {
        std::string term = text_of(d.args()[i], false);
        if (term[0] == '-')
          out += " - " + term.substr(1);
        else
          out += " + " + term;
      }
      return wrap(out);
    }
    case DimOp::mul: {
      std::string out;
      size_t first = 0;
      if (d.args()[0] == Dim(-1)) out = "-", first = 1;
      for (size_t i = first; i < d.args().size(); ++i) {
        if (i > first) out += "*";
        out +=
            i == 0 && d.args()[0].is_constant() ? fmt::format("{}", d.args()[0].value()) : text_of(d.args()[i], true);
      }
      return wrap(out);
    }
    case DimOp::floor_div:
      return wrap(text_of(d.args()[0], true) + " / " + text_of(d.args()[1], true));
    case DimOp::mod:
      return wrap(text_of(d.args()[0], true) + " % " + text_of(d.args()[1], true));
    case DimOp::min:
      return fmt::format("min({}, {})", text_of(d.args()[0], false), text_of(d.args()[1], false));
    case DimOp::max:
      return fmt::format("max({}, {})", text_of(d.args()[0], false), text_of(d.args()[1], false));
  }
  return {};
}

class DimParser {
 public:
  explicit DimParser(std::string_view text) : text_(text) {}

  Dim run() {
    Dim d = sum();
    skip();
    if (at_ != text_.size()) stop("an operator");
    return d;
  }

 private:
  const int64_t most_depth_ = 2 * limits_in_force().dim_depth;  // an operation and its parentheses
  std::string_view text_;
  size_t at_ = 0;
  int64_t depth_ = 0;

  [[noreturn]] void stop(std::string_view expected) {
    throw fail(E::bad_text, "dimension \"{}\": expected {} at column {}", text_, expected, at_ + 1);
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    if (!take(c)) stop(fmt::format("'{}'", c));
  }

  Dim sum() {
    if (++depth_ > most_depth_) stop("fewer nested parentheses");
    Dim d = take('-') ? Dim(-1) * product() : product();
    for (;;) {
      if (take('+'))
        d = d + product();
      else if (take('-'))
        d = d - product();
      else
        break;
    }
    --depth_;
    return d;
  }

  Dim product() {
    Dim d = atom();
    for (;;) {
      if (take('*'))
        d = d * atom();
      else if (take('/'))
        d = floor_div(d, atom());
      else if (take('%'))
        d = mod(d, atom());
      else
        return d;
    }
  }

  Dim atom() {
    skip();
    if (at_ >= text_.size()) stop("a dimension");
    const char c = text_[at_];
    if (std::isdigit(static_cast<unsigned char>(c))) return integer();
    if (take('(')) {
      Dim d = sum();
      need(')');
      return d;
    }
    if (c == '"') return quoted();
    if (!starts_name(c)) stop("a dimension");
    const size_t first = at_;
    while (at_ < text_.size() && continues_name(text_[at_])) ++at_;
    const std::string name(text_.substr(first, at_ - first));
    if ((name == "min" || name == "max") && take('(')) {
      Dim a = sum();
      need(',');
      Dim b = sum();
      need(')');
      return name == "min" ? min(a, b) : max(a, b);
    }
    return Dim::symbol(name);
  }

  Dim integer() {
    int64_t value = 0;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_) {
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{text_[at_] - '0'}, &value)) {
        stop("a number below 2^63");
      }
    }
    return value;
  }

  Dim quoted() {
    std::string name;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] != '\\') {
        name += text_[at_];
      } else if (++at_ < text_.size()) {
        name += text_[at_] == 'n' ? '\n' : text_[at_];
      }
    }
    if (at_ >= text_.size() || name.empty()) stop("a quoted symbol");
    ++at_;
    return Dim::symbol(name);
  }
};

}  // namespace

std::string Dim::text() const { return text_of(*this, false); }
Dim Dim::parse(std::string_view text) { return DimParser(text).run(); }

std::string Shape::text() const {
  if (!ranked) return "[*]";
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) out += ",";
    out += dims[i].text();
  }
  return out + "]";
}

}  // namespace opfuse
