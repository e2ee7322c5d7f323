// Text of expressions and its parser. Shared operations are named once, in order of first use:
//   t0 = exp(r0); div(t0, add(t0, 1))
// Leaves: r0 (read), in0 (in_bounds), i0 (coord), s0 (result), {n + 1} (extent). Constants: 0.5, true,
// ~0.5 (weak). f32 is the dtype that need not be said: r0:i8, 3:i64. cast<i8>(x) names its target.
#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <unordered_map>

#include "base/fail.hpp"
#include "expr/expr.hpp"
#include "expr/expr_node.hpp"

namespace opfuse {

namespace {

std::string typed(std::string text, DType dtype) {
  return dtype == DType::f32 ? text : fmt::format("{}:{}", text, name_of(dtype));
}

std::string leaf_text(const Expr& e) {
  switch (e.op()) {
    case ExprOp::read:
      return typed(fmt::format("r{}", e.index()), e.dtype());
    case ExprOp::in_bounds:
      return fmt::format("in{}", e.index());
    case ExprOp::coord:
      return fmt::format("i{}", e.index());
    case ExprOp::result:
      return typed(fmt::format("s{}", e.index()), e.dtype());
    case ExprOp::extent:
      return "{" + e.dim().text() + "}";
    default:
      break;
  }
  if (e.weak()) return fmt::format("~{}", e.value());
  if (e.dtype() == DType::boolean) return e.integer_value() != 0 ? "true" : "false";
  return typed(is_float(e.dtype()) ? fmt::format("{}", e.value()) : fmt::format("{}", e.node()->integer), e.dtype());
}

class ExprParser {
 public:
  explicit ExprParser(std::string_view text) : text_(text) {}

  Expr run() {
    for (;;) {
      const size_t start = at_;
      const std::string name = word();
      if (name.size() < 2 || name[0] != 't' || !take('=')) {
        at_ = start;
        break;
      }
      Expr value = expression();
      need(';');
      if (!named_.emplace(name, value).second) stop("a new name");
    }
    Expr e = expression();
    skip();
    if (at_ != text_.size()) stop("the end");
    return e;
  }

 private:
  static constexpr int kMaxDepth = 1000;  // a bound on the C++ stack
  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  std::map<std::string, Expr> named_;

  [[noreturn]] void stop(std::string_view expected) const {
    throw fail(E::bad_text, "expression \"{}\": expected {} at column {}", text_.substr(0, 200), expected, at_ + 1);
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip() {
    while (std::isspace(static_cast<unsigned char>(peek()))) ++at_;
  }
  bool take(char c) {
    skip();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    if (!take(c)) stop(fmt::format("'{}'", c));
  }
  std::string word() {
    skip();
    const size_t first = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_') ++at_;
    return std::string(text_.substr(first, at_ - first));
  }

  DType dtype_suffix() {
    if (!take(':')) return DType::f32;
    return dtype_name();
  }
  DType dtype_name() {
    const std::string name = word();
    const auto dtype = parse_dtype(name);
    if (!dtype || byte_size(*dtype) == 0) stop("an element type");
    return *dtype;
  }

  int index_of(const std::string& name, size_t prefix) const {
    int value = 0;
    auto [end, error] = std::from_chars(name.data() + prefix, name.data() + name.size(), value);
    return error == std::errc() && end == name.data() + name.size() && value >= 0 ? value : -1;
  }

  double number() {
    skip();
    double sign = 1;
    if (take('-')) sign = -1;
    const size_t first = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '.' ||
           ((peek() == '-' || peek() == '+') && at_ > first && text_[at_ - 1] == 'e')) {
      ++at_;
    }
    const std::string_view token = text_.substr(first, at_ - first);
    double value = 0;
    auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (error != std::errc() || end != token.data() + token.size()) stop("a number");
    return std::copysign(value, sign);
  }

  Expr constant() {
    const size_t first = at_;
    const double value = number();
    const size_t last = at_;
    const DType dtype = dtype_suffix();
    if (is_float(dtype)) return Expr::constant(dtype, value);
    int64_t integer = 0;
    auto [end, error] = std::from_chars(text_.data() + first, text_.data() + last, integer);
    if (error != std::errc() || end != text_.data() + last) stop("an integer");
    return Expr::integer(dtype, integer);
  }

  Expr extent() {
    const size_t first = at_;
    for (bool quoted = false; at_ < text_.size() && (quoted || peek() != '}'); ++at_) {
      if (quoted && peek() == '\\')
        ++at_;
      else if (peek() == '"')
        quoted = !quoted;
    }
    const size_t last = std::min(at_, text_.size());
    need('}');
    return Expr::extent(Dim::parse(text_.substr(first, last - first)));
  }

  Expr expression() {
    if (++depth_ > kMaxDepth) stop("fewer nested operations");
    Expr e = unlimited();
    --depth_;
    return e;
  }

  Expr unlimited() {
    skip();
    if (take('{')) return extent();
    if (take('~')) return Expr(number());
    if (std::isdigit(static_cast<unsigned char>(peek())) || peek() == '-') return constant();
    const size_t start = at_;
    const std::string name = word();
    if (name == "inf" || name == "nan") {
      at_ = start;
      return constant();
    }
    if (name == "true" || name == "false") return Expr::integer(DType::boolean, name == "true");
    if (auto found = named_.find(name); found != named_.end()) return found->second;
    if (name == "cast") return cast_expression(ExprOp::cast);
    if (name == "bit_cast") return cast_expression(ExprOp::bit_cast);
    if (auto op = parse_expr_op(name); op && arity(*op) > 0) return operation(*op);
    if (name.starts_with("in") && index_of(name, 2) >= 0) return Expr::in_bounds(index_of(name, 2));
    const int index = name.empty() ? -1 : index_of(name, 1);
    if (index >= 0 && name[0] == 'i') return Expr::coord(index);
    if (index >= 0 && name[0] == 'r') return Expr::read(index, dtype_suffix());
    if (index >= 0 && name[0] == 's') return Expr::result(index, dtype_suffix());
    at_ = start;
    stop("an expression");
  }

  Expr cast_expression(ExprOp op) {
    need('<');
    const DType to = dtype_name();
    need('>');
    need('(');
    Expr x = expression();
    need(')');
    return op == ExprOp::cast ? Expr::make_cast(x, to) : Expr::make_bit_cast(x, to);
  }

  Expr operation(ExprOp op) {
    need('(');
    std::vector<Expr> args;
    for (int i = 0; i < arity(op); ++i) {
      if (i > 0) need(',');
      args.push_back(expression());
    }
    need(')');
    return Expr::make(op, std::move(args));
  }
};

}  // namespace

std::string Expr::text() const {
  if (!node_) return "";
  std::unordered_map<const ExprNode*, int> readers;
  visit([&](const Expr& e) {
    for (const Expr& arg : e.args()) ++readers[arg.node()];
  });
  std::unordered_map<const ExprNode*, std::string> texts;
  std::string out;
  int next = 0;
  visit([&](const Expr& e) {
    std::string text;
    if (e.args().empty()) {
      text = leaf_text(e);
    } else {
      text = e.op() >= ExprOp::cast ? fmt::format("{}<{}>(", name_of(e.op()), name_of(e.dtype()))
                                    : fmt::format("{}(", name_of(e.op()));
      for (size_t i = 0; i < e.args().size(); ++i) text += (i > 0 ? ", " : "") + texts.at(e.args()[i].node());
      text += ")";
      if (readers[e.node()] > 1) {
        out += fmt::format("t{} = {}; ", next, text);
        text = fmt::format("t{}", next++);
      }
    }
    texts.emplace(e.node(), std::move(text));
  });
  return out + texts.at(node_.get());
}

Expr Expr::parse(std::string_view text) { return ExprParser(text).run(); }

}  // namespace opfuse
