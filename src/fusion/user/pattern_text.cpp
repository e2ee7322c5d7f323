// A recursive-descent parser from text to Pattern values.
#include "fusion/user/pattern_text.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/did_you_mean.hpp"
#include "fusion/patterns.hpp"
#include "fusion/user/operator_names.hpp"
#include "fusion/user/text_cursor.hpp"
#include "match/activation.hpp"

namespace opfuse {

namespace {

constexpr int kMostTimes = 64;  // of a repetition: the matcher recurses once per time

class Parser {
 public:
  Parser(std::string_view text, const TextPlace& at) : in_(text, at) {}
  Pattern run() {
    Pattern pattern = chain();
    if (!in_.done()) throw in_.error(in_.position(), "expected an element or the end, found '{}'", in_.peek());
    return pattern;
  }

 private:
  TextCursor in_;

  bool separator() {
    in_.skip_spaces();
    return in_.take("->") || in_.take("--") || in_.take(">>");
  }
  bool at_end() {
    while (separator()) {
    }
    return in_.done() || std::string_view(",)]|}").find(in_.peek()) != std::string_view::npos;
  }
  void expect(std::string_view what) {
    in_.skip_spaces();
    if (!in_.take(what)) throw in_.error(in_.position(), "expected '{}'", what);
  }

  Pattern chain() {
    Pattern all;
    bool after_fork = false;
    while (!at_end()) {
      Pattern next = element();
      const ElementKind first = next.chain().front()->kind;
      if (after_fork && (next.chain().size() != 1 || first != ElementKind::op))
        throw in_.error(in_.position(), "a fork is followed by the operator its branches meet in");
      if (after_fork) next = join(next);
      after_fork = first == ElementKind::fork;
      all = all >> next;
    }
    if (after_fork) throw in_.error(in_.position(), "a fork is followed by the operator its branches meet in");
    if (all.chain().empty()) throw in_.error(in_.position(), "expected an element");
    return all;
  }

  Pattern element() {
    if (in_.take("[")) {
      Pattern part = chain();
      expect("]");
      return maybe(part);
    }
    if (in_.take("(")) return repetition();
    if (in_.peek() == '{') return choice("");
    if (double n = 0; in_.number(n)) return scalar(n);
    if (in_.take("-")) {
      double n = 0;
      return in_.number(n) ? scalar(-n) : pass_through();
    }
    return named();
  }

  Pattern repetition() {
    Pattern part = chain();
    expect(")");
    expect("{");
    const size_t at = in_.position();
    const std::optional<int> lo = times(","), hi = lo ? times("}") : std::nullopt;
    if (!hi || *hi < *lo) throw in_.error(at, "expected how often, as in {{0,3}} (at most {})", kMostTimes);
    return repeat(part, *lo, *hi);
  }

  /// A whole number up to kMostTimes and what ends it.
  std::optional<int> times(std::string_view end) {
    double n = 0;
    in_.skip_spaces();
    if (!in_.number(n) || n > kMostTimes || n != std::floor(n)) return std::nullopt;
    in_.skip_spaces();
    return in_.take(end) ? std::optional(static_cast<int>(n)) : std::nullopt;
  }

  /// Operator names and nothing more.
  static bool is_plain(const Pattern& p) {
    const Element& e = *p.chain().front();
    return p.chain().size() == 1 && e.kind == ElementKind::op && e.binding.empty() && e.sides.empty() &&
           e.predicates.empty() && !e.shared && !e.join;
  }

  /// {relu|clip}: one operator of several, which may be bound; {p | q}: alternatives of any shape, which may not.
  Pattern choice(const std::string& bound) {
    const size_t at = in_.position();
    expect("{");
    std::vector<Pattern> parts;
    do parts.push_back(chain());
    while (in_.take("|"));
    expect("}");
    if (std::all_of(parts.begin(), parts.end(), is_plain)) {
      std::vector<std::string> names;
      for (const Pattern& p : parts) {
        const std::vector<std::string>& ops = p.chain().front()->ops;
        names.insert(names.end(), ops.begin(), ops.end());
      }
      return with_sides(any_op(names, bound));
    }
    if (!bound.empty()) throw in_.error(at, "only a choice of operators can be bound to \"{}\"", bound);
    return one_of(std::move(parts));
  }

  Pattern named() {
    const size_t at = in_.position();
    std::string name = in_.name(), bound;
    if (name.empty()) throw in_.error(at, "expected an element, found '{}'", in_.peek());
    if (in_.take(":")) {
      bound = std::exchange(name, {});
      if (in_.peek() == '{') return choice(bound);
      name = in_.name();
    }
    if (name == "any") return any(bound);
    if (name == "tensor") return tensor(bound);
    if (name == "constant") return constant(bound);
    if (name == "activation") return activation(bound);
    if (name == "conv_block") return conv_block();
    if (name == "linear_block") return linear_block();
    if (name == "fork") return branches();
    const auto& known = operator_names();
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw in_.error(at, "there is no operator \"{}\"", name).hint(did_you_mean(name, known));
    return with_sides(op(name, bound));
  }

  Pattern branches() {
    expect("(");
    std::vector<Pattern> parts;
    do parts.push_back(chain());
    while (in_.take(","));
    expect(")");
    return fork(std::move(parts));
  }

  Pattern with_sides(Pattern pattern) {
    if (in_.take("(")) {
      const size_t at = in_.position();
      std::vector<Pattern> sides;
      do sides.push_back(chain());
      while (in_.take(","));
      expect(")");
      if (sides.size() > 3) throw in_.error(at, "at most three side operands, found {}", sides.size());
      pattern = sides.size() == 1   ? pattern.with(sides[0])
                : sides.size() == 2 ? pattern.with(sides[0], sides[1])
                                    : pattern.with(sides[0], sides[1], sides[2]);
    }
    return in_.take("*") ? pattern.shared() : pattern;
  }
};

}  // namespace

Pattern parse_topology(std::string_view text, const TextPlace& at) { return Parser(text, at).run(); }

}  // namespace opfuse
