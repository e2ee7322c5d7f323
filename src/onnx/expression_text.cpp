// A parser by precedence that writes a node as it goes:
//
//     definition = [domain "::"] name "(" parameter {"," parameter} ")" "=" expression
//     parameter  = name ["=" number]                       with a number: an attribute
//     expression = comparison of sums of products of powers of  number, name, -x, (x), f(x, ...)
//
// A number has no type of its own: it is an f64 until it meets a typed operand, and is cast like that one.
#include "onnx/expression_text.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/fail.hpp"
#include "base/limits.hpp"
#include "onnx/wire.hpp"

namespace opfuse::onnx {
namespace {

constexpr int64_t kOpset = 18, kDouble = 11;
constexpr const char* kResult = "result/y";  // no parameter can be called so

struct Function {
  std::string_view name, onnx;
  size_t least, most;
};
constexpr size_t kAny = 64;
constexpr Function kFunctions[] = {
    {"abs", "Abs", 1, 1},
    {"acos", "Acos", 1, 1},
    {"acosh", "Acosh", 1, 1},
    {"asin", "Asin", 1, 1},
    {"asinh", "Asinh", 1, 1},
    {"atan", "Atan", 1, 1},
    {"atanh", "Atanh", 1, 1},
    {"ceil", "Ceil", 1, 1},
    {"cos", "Cos", 1, 1},
    {"cosh", "Cosh", 1, 1},
    {"erf", "Erf", 1, 1},
    {"exp", "Exp", 1, 1},
    {"floor", "Floor", 1, 1},
    {"log", "Log", 1, 1},
    {"max", "Max", 2, kAny},
    {"min", "Min", 2, kAny},
    {"pow", "Pow", 2, 2},
    {"relu", "Relu", 1, 1},
    {"reciprocal", "Reciprocal", 1, 1},
    {"round", "Round", 1, 1},
    {"sigmoid", "Sigmoid", 1, 1},
    {"sign", "Sign", 1, 1},
    {"sin", "Sin", 1, 1},
    {"sinh", "Sinh", 1, 1},
    {"softplus", "Softplus", 1, 1},
    {"softsign", "Softsign", 1, 1},
    {"sqrt", "Sqrt", 1, 1},
    {"tan", "Tan", 1, 1},
    {"tanh", "Tanh", 1, 1},
    {"where", "Where", 3, 3},
};

struct Binary {
  std::string_view sign, onnx;
  int level;
  bool logical = false;
};
constexpr Binary kBinaries[] = {{"<=", "LessOrEqual", 0, true},
                                {">=", "GreaterOrEqual", 0, true},
                                {"==", "Equal", 0, true},
                                {"<", "Less", 0, true},
                                {">", "Greater", 0, true},
                                {"+", "Add", 1},
                                {"-", "Sub", 1},
                                {"**", "Pow", 3},
                                {"*", "Mul", 2},
                                {"/", "Div", 2}};
constexpr int kUnary = 3;  // -x ** 2 is -(x ** 2)

/// A value, or a number that has no type yet.
struct Term {
  std::string value;
  bool typed = true;
};

class Parser {
 public:
  Parser(std::string_view text, const TextOrigin& origin) : text_(text), origin_(origin) {}

  ExpressionOperator run() {
    result_.name = name("the name of an operator");
    while (take("::") || take(".")) {
      result_.domain += (result_.domain.empty() ? "" : ".") + result_.name;
      result_.name = name("the name of an operator");
    }
    parameters();
    expect("=");
    const Term y = expression(0);
    skip_space();
    if (at_ < text_.size()) wrong(at_, "an operator or the end of the line is missing");
    Encoder out;
    for (const std::string& input : result_.inputs) out.bytes(4, input);
    add("Identity", {typed(y, result_.inputs.front())}, kResult);
    out.bytes(5, kResult);
    out.raw(defaults_.text());
    out.raw(nodes_.text());
    Encoder opset;
    opset.bytes(1, "");
    opset.integer(2, kOpset);
    out.message(9, opset);
    result_.fields = out.text();
    return std::move(result_);
  }

 private:
  [[noreturn]] void wrong(size_t at, const std::string& what) const {
    const std::string place = fmt::format("{}:{}", origin_.line, at + 1);
    throw fail(E::bad_file, "{}:{}: {}", origin_.file.empty() ? "--operator" : origin_.file, place, what)
        .operand(std::string(text_))
        .hint("an operator is written like this: swish(x, b) = x * sigmoid(b * x)");
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
  }
  bool take(std::string_view sign) {
    skip_space();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }
  void expect(std::string_view sign) {
    if (!take(sign)) wrong(at_, fmt::format("'{}' is missing", sign));
  }

  static bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  std::string name(const char* what) {
    skip_space();
    const size_t first = at_;
    while (at_ < text_.size() && (begins_name(text_[at_]) || (at_ > first && text_[at_] >= '0' && text_[at_] <= '9')))
      ++at_;
    if (at_ == first) wrong(at_, fmt::format("{} is missing", what));
    return std::string(text_.substr(first, at_ - first));
  }
  std::optional<double> number() {
    skip_space();
    double value = 0;
    const char* const first = text_.data() + at_;
    if (at_ == text_.size() || !((*first >= '0' && *first <= '9') || *first == '.')) return std::nullopt;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (error != std::errc()) wrong(at_, "this is not a number that fits f64");
    at_ += static_cast<size_t>(end - first);
    return value;
  }

  void parameters() {
    expect("(");
    do {
      const size_t at = at_;
      const std::string given = name("a parameter");
      if (known(result_.inputs, given) || known(result_.attributes, given))
        wrong(at, fmt::format("there are two parameters \"{}\"", given));
      if (!take("=")) {
        if (!result_.attributes.empty()) wrong(at, fmt::format("\"{}\" comes after parameters with values", given));
        result_.inputs.push_back(given);
        continue;
      }
      const bool negative = take("-");
      const auto value = number();
      if (!value) wrong(at_, fmt::format("the value of \"{}\" is missing", given));
      result_.attributes.push_back(given);
      Encoder attribute;
      attribute.bytes(1, given);
      attribute.real(2, static_cast<float>(negative ? -*value : *value));
      attribute.integer(20, static_cast<int64_t>(AttributeType::f));
      defaults_.message(11, attribute);
    } while (take(","));
    expect(")");
    if (result_.inputs.empty()) wrong(at_, "an operator has at least one parameter without a value: its operand");
  }

  static bool known(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  /// A node; returns its result.
  std::string add(std::string_view onnx, const std::vector<std::string>& operands, std::string to = {},
                  const Encoder* attribute = nullptr) {
    if (to.empty()) to = fmt::format("result/{}", count_++);
    Encoder node;
    for (const std::string& operand : operands) node.bytes(1, operand);
    node.bytes(2, to);
    node.bytes(3, fmt::format("{}{}", onnx, names_++));
    node.bytes(4, onnx);
    if (attribute) node.message(5, *attribute);
    nodes_.message(7, node);
    return to;
  }
  std::string typed(const Term& term, const std::string& like) {
    return term.typed ? term.value : add("CastLike", {term.value, like});
  }

  Term constant(double value) {
    Encoder tensor, attribute;
    const auto bits = std::bit_cast<uint64_t>(value);
    std::string raw;
    for (int byte = 0; byte < 8; ++byte) raw += static_cast<char>(bits >> (8 * byte) & 0xff);
    tensor.integer(2, kDouble);
    tensor.bytes(9, raw);
    attribute.bytes(1, "value");
    attribute.message(5, tensor);
    attribute.integer(20, static_cast<int64_t>(AttributeType::tensor));
    return {add("Constant", {}, {}, &attribute), false};
  }
  Term attribute(const std::string& name) {
    Encoder value, to;
    value.bytes(1, "value_float");
    value.integer(20, static_cast<int64_t>(AttributeType::f));
    value.bytes(21, name);
    to.bytes(1, "to");
    to.integer(3, kDouble);
    to.integer(20, static_cast<int64_t>(AttributeType::i));
    const std::string real = add("Constant", {}, {}, &value);
    return {add("Cast", {real}, {}, &to), false};
  }

  /// Operands of one type: numbers are cast like the first that has one; `from`: operands before it keep their own.
  Term apply(std::string_view onnx, std::vector<Term> operands, size_t from = 0) {
    const auto first = std::find_if(operands.begin() + static_cast<std::ptrdiff_t>(from), operands.end(),
                                    [](const Term& t) { return t.typed; });
    std::vector<std::string> values;
    for (size_t i = 0; i < operands.size(); ++i)
      values.push_back(i < from || first == operands.end() ? operands[i].value : typed(operands[i], first->value));
    return {add(onnx, values), first != operands.end()};
  }

  const Binary* binary(int level) {
    skip_space();
    for (const Binary& b : kBinaries)
      if (text_.substr(at_).starts_with(b.sign))
        return b.level == level && !(b.sign == "*" && text_.substr(at_).starts_with("**")) ? &b : nullptr;
    return nullptr;
  }

  Term expression(int level) {
    if (level == kUnary) return unary();
    Term left = expression(level + 1);
    while (const Binary* b = binary(level)) {
      at_ += b->sign.size();
      left = apply(b->onnx, {left, expression(level + 1)});
      left.typed = left.typed || b->logical;
      if (b->logical) break;
    }
    return left;
  }
  Term unary() {
    const Nested nested(*this);
    if (take("-")) return apply("Neg", {unary()});
    Term base = primary();
    if (!take("**")) return base;
    return apply("Pow", {base, unary()});
  }

  Term primary() {
    if (take("(")) {
      const Term inner = expression(0);
      expect(")");
      return inner;
    }
    if (const auto value = number()) return constant(*value);
    const size_t at = at_;
    const std::string given = name("an operand");
    if (take("(")) return call(given, at);
    if (known(result_.inputs, given)) return {given};
    if (known(result_.attributes, given)) return attribute(given);
    wrong(at, fmt::format("\"{}\" is not a parameter of \"{}\"", given, result_.name));
  }

  Term call(const std::string& given, size_t at) {
    const auto* f = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                 [&](const Function& function) { return function.name == given; });
    if (f == std::end(kFunctions)) {
      std::string all;
      for (const Function& function : kFunctions) all += fmt::format("{}{}", all.empty() ? "" : " ", function.name);
      wrong(at, fmt::format("there is no function \"{}\" in expressions, but {}", given, all));
    }
    std::vector<Term> operands;
    do operands.push_back(expression(0));
    while (take(","));
    expect(")");
    if (operands.size() < f->least || operands.size() > f->most)
      wrong(at, fmt::format("{} takes {} operands, not {}", given,
                            f->least == f->most ? std::to_string(f->least) : "2 or more", operands.size()));
    return apply(f->onnx, operands, given == "where" ? 1 : 0);
  }

  /// An expression of thousands of parentheses ends in an error, not in the stack.
  struct Nested {
    explicit Nested(Parser& p) : parser(p) {
      const int64_t most = limits_in_force().nested_functions;
      if (++parser.depth_ > most)
        throw fail(E::bad_file, "expressions are nested more than {} deep", most)
            .hint("where this is meant, " + how_to_raise("nested_functions"));
    }
    ~Nested() { --parser.depth_; }
    Parser& parser;
  };

  std::string_view text_;
  const TextOrigin& origin_;
  size_t at_ = 0, count_ = 0, names_ = 0;
  int64_t depth_ = 0;
  Encoder nodes_, defaults_;
  ExpressionOperator result_;
};

}  // namespace

ExpressionOperator parse_expression_operator(std::string_view text, const TextOrigin& origin) {
  return Parser(text, origin).run();
}

}  // namespace opfuse::onnx
