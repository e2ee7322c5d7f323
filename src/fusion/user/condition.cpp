// A recursive-descent parser that makes a tree of small functions; evaluation notes what it read, for the refusal.
#include "fusion/user/condition.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/did_you_mean.hpp"
#include "fusion/user/condition_value.hpp"
#include "fusion/user/text_cursor.hpp"

namespace opfuse {

namespace {

using V = ConditionValue;
using Kind = V::Kind;

struct Evaluation {
  const Match& match;
  std::vector<std::string> read;   ///< "conv.group is 4"
  std::vector<std::string> wants;  ///< what would satisfy it: "pad conv.in_channels by 12"
  std::string divided;             ///< of the last remainder: what was divided,
  double divisor = 0;              ///< and by what; 0: there was none
};
using Term = std::function<V(Evaluation&)>;

V truth(const V& v) { return v.kind == Kind::boolean ? v : V{}; }

V compare(const std::string& op, const V& a, const V& b) {
  if (a.kind == Kind::unknown || b.kind == Kind::unknown || a.kind != b.kind) return {};
  if (a.kind == Kind::list) {
    if (op != "==" && op != "!=") return {};
    bool same = a.list.size() == b.list.size();
    for (size_t i = 0; i < std::min(a.list.size(), b.list.size()); ++i) {
      const V equal = compare("==", a.list[i], b.list[i]);
      if (equal.kind == Kind::unknown) return {};
      same = same && equal.number != 0;
    }
    return V::of(same == (op == "=="));
  }
  const int order = a.kind == Kind::text   ? a.text.compare(b.text)
                    : a.number == b.number ? 0
                    : a.number < b.number  ? -1
                                           : 1;
  if (op == "==") return V::of(order == 0);
  if (op == "!=") return V::of(order != 0);
  if (op == "<") return V::of(order < 0);
  if (op == "<=") return V::of(order <= 0);
  return V::of(op == ">" ? order > 0 : order >= 0);
}

/// `x % n == 0` that does not hold is told by how much x falls short.
void note_remainder(Evaluation& e, const std::string& op, const V& left, const V& right) {
  const bool asked = op == "==" && e.divisor > 0 && left.kind == Kind::number && right.kind == Kind::number;
  if (asked && right.number == 0 && left.number > 0)
    e.wants.push_back(fmt::format("pad {} by {:g}", e.divided, e.divisor - left.number));
}

V arithmetic(char op, const V& a, const V& b) {
  if (a.kind != Kind::number || b.kind != Kind::number) return {};
  if ((op == '/' || op == '%') && b.number == 0) return {};
  switch (op) {
    case '+':
      return V::of(a.number + b.number);
    case '-':
      return V::of(a.number - b.number);
    case '*':
      return V::of(a.number * b.number);
    case '/':
      return V::of(a.number / b.number);
    default:
      return V::of(std::fmod(a.number, b.number));
  }
}

class Parser {
 public:
  Parser(std::string_view text, const Pattern& topology, const TextPlace& at)
      : in_(text, at), bindings_(bindings_of(topology)) {}
  Term run() {
    Term term = either();
    in_.skip_spaces();
    if (!in_.done()) throw in_.error(in_.position(), "expected an operator or the end, found '{}'", in_.peek());
    return term;
  }

 private:
  TextCursor in_;
  std::vector<const Element*> bindings_;

  bool word(std::string_view w) {
    in_.skip_spaces();
    for (size_t i = 0; i < w.size(); ++i)
      if (in_.peek(i) != w[i]) return false;
    return !TextCursor::in_name(in_.peek(w.size())) && in_.take(w);
  }

  Term either() {
    Term left = both();
    while (word("or"))
      left = [a = left, b = both()](Evaluation& e) {
        const V x = truth(a(e));
        return x.kind == Kind::boolean && x.number == 0 ? truth(b(e)) : x;
      };
    return left;
  }
  Term both() {
    Term left = negation();
    while (word("and"))
      left = [a = left, b = negation()](Evaluation& e) {
        const V x = truth(a(e));
        return x.kind == Kind::boolean && x.number != 0 ? truth(b(e)) : x;
      };
    return left;
  }
  Term negation() {
    if (!word("not")) return comparison();
    return [a = negation()](Evaluation& e) {
      const V x = truth(a(e));
      return x.kind == Kind::boolean ? V::of(x.number == 0) : x;
    };
  }
  Term comparison() {
    Term left = sum();
    in_.skip_spaces();
    for (const char* op : {"==", "!=", "<=", ">=", "<", ">"})
      if (in_.take(op))
        return [op = std::string(op), a = left, b = sum()](Evaluation& e) {
          e.divisor = 0;
          const V x = a(e);
          const double divisor = e.divisor;
          const V y = b(e);
          e.divisor = divisor;
          note_remainder(e, op, x, y);
          return compare(op, x, y);
        };
    return left;
  }
  Term binary(std::string_view ops, Term (Parser::*next)()) {
    in_.skip_spaces();
    const size_t begin = in_.position();
    Term left = (this->*next)();
    for (;;) {
      in_.skip_spaces();
      const std::string text = in_.since(begin);
      const char op = in_.peek();
      if (op == '\0' || ops.find(op) == std::string_view::npos) return left;
      in_.take(std::string_view(&op, 1));
      left = [op, text, a = left, b = (this->*next)()](Evaluation& e) {
        const V x = a(e), y = b(e);
        e.divided = text;
        e.divisor = op == '%' && y.kind == Kind::number ? y.number : 0;
        return arithmetic(op, x, y);
      };
    }
  }
  Term sum() { return binary("+-", &Parser::product); }
  Term product() { return binary("*/%", &Parser::factor); }

  Term factor() {
    in_.skip_spaces();
    if (in_.take("-")) return [a = factor()](Evaluation& e) { return arithmetic('-', V::of(0.0), a(e)); };
    if (in_.take("(")) {
      Term inner = either();
      expect(")");
      return inner;
    }
    if (double n = 0; in_.number(n)) return constant(V::of(n));
    if (in_.peek() == '"' || in_.peek() == '\'') return constant(V::of(quoted()));
    return named();
  }

  static Term constant(V value) {
    return [value = std::move(value)](Evaluation&) { return value; };
  }
  void expect(std::string_view what) {
    in_.skip_spaces();
    if (!in_.take(what)) throw in_.error(in_.position(), "expected '{}'", what);
  }
  std::string quoted() {
    const size_t begin = in_.position();
    const char quote = in_.peek();
    std::string text;
    for (in_.take(std::string_view(&quote, 1)); in_.peek() != quote;) {
      if (in_.done()) throw in_.error(begin, "the text has no closing quote");
      const char c = in_.peek();
      text += c;
      in_.take(std::string_view(&c, 1));
    }
    in_.take(std::string_view(&quote, 1));
    return text;
  }

  const Element& binding(const std::string& name, size_t at) {
    std::vector<std::string> known;
    for (const Element* element : bindings_) {
      if (element->binding == name) return *element;
      known.push_back(element->binding);
    }
    throw in_.error(at, "the topology has no binding \"{}\"", name).hint(did_you_mean(name, known));
  }

  Term named() {
    const size_t at = in_.position();
    const std::string name = in_.name();
    if (name.empty()) throw in_.error(at, "expected a number, a text, a name or '('");
    if (name == "true" || name == "false") return constant(V::of(name == "true"));
    if (name == "has") return presence();
    const Element& element = binding(name, at);
    expect(".");
    const size_t property_at = in_.position();
    const std::string property = in_.name();
    const std::vector<std::string> known = properties_of(element);
    if (std::find(known.begin(), known.end(), property) == known.end())
      throw in_.error(property_at, "{} has no property \"{}\"", element.text(), property)
          .hint(did_you_mean(property, known));
    return indexed([name, property](Evaluation& e) {
      V value = property_of(e.match, name, property);
      e.read.push_back(fmt::format("{}.{} is {}", name, property, value.print()));
      return value;
    });
  }

  Term presence() {
    expect("(");
    in_.skip_spaces();
    const size_t at = in_.position();
    const std::string name = in_.name();
    binding(name, at);
    expect(")");
    return [name](Evaluation& e) {
      e.read.push_back(fmt::format("{} is {}", name, e.match.has(name) ? "there" : "absent"));
      return V::of(e.match.has(name));
    };
  }

  Term indexed(Term list) {
    while (in_.take("[")) {
      Term index = sum();
      expect("]");
      list = [a = list, index](Evaluation& e) {
        const V values = a(e), i = index(e);
        if (values.kind != Kind::list || i.kind != Kind::number) return V{};
        const double at = i.number < 0 ? i.number + static_cast<double>(values.list.size()) : i.number;
        return at >= 0 && at < static_cast<double>(values.list.size()) ? values.list[static_cast<size_t>(at)] : V{};
      };
    }
    return list;
  }
};

}  // namespace

MatchPredicate parse_condition(std::string_view text, const Pattern& topology, const TextPlace& at) {
  const Term term = Parser(text, topology, at).run();
  const std::string source(text);
  return {source, [term, source](const Match& m) -> std::optional<Decline> {
            Evaluation evaluation{.match = m};
            const V value = term(evaluation);
            if (value.kind == Kind::boolean && value.number != 0) return std::nullopt;
            const std::string read = fmt::format("{}", fmt::join(evaluation.read, ", "));
            const std::string change =
                evaluation.wants.empty() ? "" : fmt::format("; {}", fmt::join(evaluation.wants, ", "));
            if (value.kind == Kind::boolean)
              return Decline{"condition", fmt::format("{} does not hold: {}{}", source, read, change), evaluation.read};
            return Decline{"unknown_value", fmt::format("{} cannot be decided: {}", source, read), evaluation.read};
          }};
}

}  // namespace opfuse
