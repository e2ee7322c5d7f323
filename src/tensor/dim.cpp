// Integer polynomials over symbols and atoms (floor_div, mod, min, max), kept canonical so that equal
// expressions compare equal. Laws, for constants a, b > 0 and g = gcd of all coefficients and b:
//   (b*q + r) / b       = q + r / b             coefficients of r are in [0, b)
//   (g*x + c) / (g*b)   = (x + c / g) / b
//   (x / a + c) / b     = (x + a*c) / (a*b)
//   (b*q + r) % b       = r % b                 and (g*x + c) % (g*b) = g * ((x + c / g) % b) + c % g
// Division rounds down. All arithmetic is checked: overflow is E::bad_dimension.
#include "tensor/dim.hpp"

#include <algorithm>
#include <numeric>

#include "base/fail.hpp"
#include "base/limits.hpp"
#include "tensor/dim_node.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {

namespace {

/// Products of sums grow exponentially, and so do trees whose operands are shared.
[[noreturn]] void too_large(const char* what, int64_t most, const char* limit) {
  throw fail(E::bad_dimension, "the expression of an open dimension has more than {} {}", most, what)
      .hint("export the model with fixed sizes, or " + how_to_raise(limit));
}

void check_terms(size_t terms) {
  const int64_t most = limits_in_force().dim_nodes;
  if (static_cast<int64_t>(terms) > most) too_large("terms", most, "dim_nodes");
}

[[noreturn]] void overflow() { throw fail(E::bad_dimension, "a dimension overflows 64 bits"); }

int64_t add_checked(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) overflow();
  return r;
}
int64_t mul_checked(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) overflow();
  return r;
}
int64_t div_floor(int64_t a, int64_t b) {
  if (b == 0)
    throw fail(E::bad_dimension, "a dimension is divided by zero")
        .hint(
            "the model has no shape at these sizes (an open dimension counts as 1): give larger ones, --dim "
            "NAME=VALUE");
  if (b == -1) return mul_checked(a, -1);
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}
int64_t mod_floor(int64_t a, int64_t b) {
  if (b == 0) throw fail(E::bad_dimension, "a dimension is taken modulo zero");
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

std::strong_ordering compare_lists(const std::vector<Dim>& a, const std::vector<Dim>& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (auto c = compare(a[i], b[i]); c != 0) return c;
  }
  return a.size() <=> b.size();
}

/// Graded: higher degree first.
bool before(const Monomial& a, const Monomial& b) {
  if (a.size() != b.size()) return a.size() > b.size();
  return compare_lists(a, b) < 0;
}

void add_term(Polynomial& p, const Monomial& m, int64_t coefficient) {
  auto at = std::lower_bound(p.begin(), p.end(), m,
                             [](const auto& term, const Monomial& key) { return before(term.first, key); });
  if (at != p.end() && at->first == m) {
    at->second = add_checked(at->second, coefficient);
    if (at->second == 0) p.erase(at);
  } else if (coefficient != 0) {
    check_terms(p.size() + 1);
    p.insert(at, {m, coefficient});
  }
}

Monomial product(const Monomial& a, const Monomial& b) {
  check_terms(a.size() + b.size());
  Monomial m(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), m.begin(),
             [](const Dim& x, const Dim& y) { return compare(x, y) < 0; });
  return m;
}

/// Quotient of two monomials when exact.
std::optional<Monomial> quotient(const Monomial& a, const Monomial& b) {
  Monomial rest;
  size_t j = 0;
  for (const Dim& atom : a) {
    if (j < b.size() && atom == b[j])
      ++j;
    else
      rest.push_back(atom);
  }
  if (j != b.size()) return std::nullopt;
  return rest;
}

Polynomial times(const Polynomial& p, const Monomial& m, int64_t c) {
  Polynomial out;
  for (const auto& [pm, pc] : p) add_term(out, product(pm, m), mul_checked(pc, c));
  return out;
}

void add_scaled(Polynomial& into, const Polynomial& p, int64_t factor) {
  for (const auto& [m, c] : p) add_term(into, m, mul_checked(c, factor));
}

int64_t constant_term(const Polynomial& p) { return !p.empty() && p.back().first.empty() ? p.back().second : 0; }

/// Polynomial long division by one divisor; quotient and remainder with a = q*b + r.
std::pair<Polynomial, Polynomial> divide(Polynomial a, const Polynomial& b) {
  Polynomial q, r;
  while (!a.empty()) {
    const auto lead = a.front();
    const auto m = quotient(lead.first, b.front().first);
    if (m && lead.second % b.front().second == 0 && !(lead.second == INT64_MIN && b.front().second == -1)) {
      const int64_t c = lead.second / b.front().second;
      add_term(q, *m, c);
      add_scaled(a, times(b, *m, c), -1);
    } else {
      add_term(r, lead.first, lead.second);
      a.erase(a.begin());
    }
  }
  return {q, r};
}

/// Splits p = b*q + r with the coefficients of r in [0, b).
std::pair<Polynomial, Polynomial> split(const Polynomial& p, int64_t b) {
  Polynomial q, r;
  for (const auto& [m, c] : p) {
    add_term(q, m, div_floor(c, b));
    add_term(r, m, mod_floor(c, b));
  }
  return {q, r};
}

/// gcd of b and of all coefficients but the constant term's.
int64_t common_factor(const Polynomial& p, int64_t b) {
  int64_t g = b;
  for (const auto& [m, c] : p) {
    if (!m.empty()) g = std::gcd(g, c);
  }
  return g;
}

/// p with coefficients divided by g, the constant term rounded down.
Polynomial scaled_down(const Polynomial& p, int64_t g) {
  Polynomial out;
  for (const auto& [m, c] : p) add_term(out, m, div_floor(c, g));
  return out;
}

/// r / b for constant b > 1 and coefficients of r in [0, b).
Dim reduced_floor_div(Polynomial r, int64_t b) {
  if (r.empty() || (r.size() == 1 && r[0].first.empty())) return 0;
  const int64_t g = common_factor(r, b);
  if (g > 1) return floor_div(DimBuilder::from(scaled_down(r, g)), Dim(b / g));
  const auto& [m, c] = r.front();
  if (c == 1 && m.size() == 1 && m[0].op() == DimOp::floor_div &&
      (r.size() == 1 || (r.size() == 2 && r[1].first.empty()))) {
    const Dim& inner = m[0].args()[1];
    int64_t both;
    if (inner.is_constant() && inner.value() > 0 && !__builtin_mul_overflow(inner.value(), b, &both)) {
      return floor_div(m[0].args()[0] + Dim(mul_checked(constant_term(r), inner.value())), Dim(both));
    }
  }
  return DimBuilder::make(DimOp::floor_div, {DimBuilder::from(r), Dim(b)});
}

Dim reduced_mod(Polynomial r, int64_t b) {
  if (r.empty() || (r.size() == 1 && r[0].first.empty())) return constant_term(r);
  const int64_t g = common_factor(r, b);
  if (g > 1) {
    return Dim(g) * mod(DimBuilder::from(scaled_down(r, g)), Dim(b / g)) + Dim(mod_floor(constant_term(r), g));
  }
  if (r.size() == 1 && r[0].second == 1 && r[0].first.size() == 1) {
    const Dim& atom = r[0].first[0];
    if (atom.op() == DimOp::mod && atom.args()[1] == Dim(b)) return atom;
  }
  return DimBuilder::make(DimOp::mod, {DimBuilder::from(r), Dim(b)});
}

void collect_extremum(DimOp op, const Dim& d, std::vector<Dim>& into) {
  if (d.op() != op) {
    into.push_back(d);
    return;
  }
  for (const Dim& arg : d.args()) collect_extremum(op, arg, into);
}

/// min or max: flattened, without operands that another one decides, sorted, nested to the left.
Dim extremum(DimOp op, const Dim& a, const Dim& b) {
  std::vector<Dim> all, kept;
  collect_extremum(op, a, all);
  collect_extremum(op, b, all);
  // Surely the smaller (min) or larger (max), or equal: symbols are extents.
  const auto decides = [&](const Dim& x, const Dim& y) {
    return surely_not_negative(op == DimOp::min ? y - x : x - y);
  };
  for (const Dim& candidate : all) {
    if (std::any_of(kept.begin(), kept.end(), [&](const Dim& other) { return decides(other, candidate); })) continue;
    std::erase_if(kept, [&](const Dim& other) { return decides(candidate, other); });
    kept.push_back(candidate);
  }
  std::sort(kept.begin(), kept.end(), [](const Dim& x, const Dim& y) { return compare(x, y) < 0; });
  Dim result = kept.front();
  for (size_t i = 1; i < kept.size(); ++i) result = DimBuilder::make(op, {result, kept[i]});
  return result;
}

}  // namespace

// ---- structure

Dim DimBuilder::make(DimOp op, std::vector<Dim> args) {
  const Limits& limits = limits_in_force();
  DimNode node{op, {}, std::move(args)};
  for (const Dim& arg : node.args) {
    node.nodes += arg.node_ ? arg.node_->nodes : 1;
    node.depth = std::max(node.depth, 1 + (arg.node_ ? arg.node_->depth : 1));
  }
  if (node.nodes > limits.dim_nodes) too_large("operations", limits.dim_nodes, "dim_nodes");
  if (node.depth > limits.dim_depth) too_large("operations within each other", limits.dim_depth, "dim_depth");
  return Dim(std::make_shared<const DimNode>(std::move(node)));
}

Dim DimBuilder::symbol(std::string name) {
  return Dim(std::make_shared<const DimNode>(DimNode{DimOp::symbol, std::move(name), {}}));
}

Dim DimBuilder::from(const Polynomial& p) {
  std::vector<Dim> terms;
  for (const auto& [m, c] : p) {
    if (m.empty()) {
      terms.push_back(Dim(c));
    } else if (c == 1 && m.size() == 1) {
      terms.push_back(m[0]);
    } else {
      std::vector<Dim> factors;
      if (c != 1) factors.push_back(Dim(c));
      factors.insert(factors.end(), m.begin(), m.end());
      terms.push_back(make(DimOp::mul, std::move(factors)));
    }
  }
  if (terms.empty()) return 0;
  if (terms.size() == 1) return terms[0];
  return make(DimOp::add, std::move(terms));
}

Polynomial DimBuilder::polynomial(const Dim& d) {
  Polynomial p;
  auto add_product = [&](const Dim& term) {
    if (term.is_constant()) {
      add_term(p, {}, term.value_);
    } else if (term.op() == DimOp::mul) {
      const bool scaled = term.args()[0].is_constant();
      add_term(p, Monomial(term.args().begin() + scaled, term.args().end()), scaled ? term.args()[0].value_ : 1);
    } else {
      add_term(p, {term}, 1);
    }
  };
  if (d.op() == DimOp::add) {
    for (const Dim& term : d.args()) add_product(term);
  } else {
    add_product(d);
  }
  return p;
}

std::strong_ordering compare(const Dim& a, const Dim& b) {
  if (a.is_constant() || b.is_constant()) {
    if (a.is_constant() && b.is_constant()) return a.value() <=> b.value();
    return b.is_constant() <=> a.is_constant();
  }
  if (&a.args() == &b.args() && a.op() != DimOp::symbol) return std::strong_ordering::equal;  // one node
  if (a.op() != b.op()) return a.op() <=> b.op();
  if (a.op() == DimOp::symbol) return a.symbol_name() <=> b.symbol_name();
  return compare_lists(a.args(), b.args());
}

Dim Dim::symbol(std::string name) {
  if (name.empty()) throw fail(E::bad_dimension, "a dimension symbol has an empty name");
  return DimBuilder::symbol(std::move(name));
}

int64_t Dim::value() const {
  if (!is_constant()) throw fail(E::unknown_dimension, "dimension {} must be known here", text());
  return value_;
}

DimOp Dim::op() const { return node_ ? node_->op : DimOp::constant; }

const std::string& Dim::symbol_name() const {
  OPFUSE_CHECK(op() == DimOp::symbol);
  return node_->symbol;
}

const std::vector<Dim>& Dim::args() const {
  static const std::vector<Dim> none;
  return node_ ? node_->args : none;
}

bool Dim::operator==(const Dim& other) const {
  return node_ == other.node_ ? value_ == other.value_ : compare(*this, other) == 0;
}

// ---- arithmetic

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return add_checked(a.value_, b.value_);
  Polynomial p = DimBuilder::polynomial(a);
  add_scaled(p, DimBuilder::polynomial(b), 1);
  return DimBuilder::from(p);
}

Dim operator-(const Dim& a, const Dim& b) {
  int64_t r;
  if (a.is_constant() && b.is_constant() && !__builtin_sub_overflow(a.value_, b.value_, &r)) return r;
  Polynomial p = DimBuilder::polynomial(a);
  add_scaled(p, DimBuilder::polynomial(b), -1);
  return DimBuilder::from(p);
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return mul_checked(a.value_, b.value_);
  const Polynomial pa = DimBuilder::polynomial(a), pb = DimBuilder::polynomial(b);
  Polynomial p;
  for (const auto& [m, c] : pa) add_scaled(p, times(pb, m, c), 1);
  return DimBuilder::from(p);
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return div_floor(a.value_, b.value_);
  if (b.is_constant()) {
    if (b.value_ == 0) throw fail(E::bad_dimension, "dimension {} is divided by zero", a.text());
    if (b.value_ < 0) return floor_div(a * Dim(-1), Dim(mul_checked(b.value_, -1)));
    auto [q, r] = split(DimBuilder::polynomial(a), b.value_);
    return DimBuilder::from(q) + reduced_floor_div(std::move(r), b.value_);
  }
  auto [q, r] = divide(DimBuilder::polynomial(a), DimBuilder::polynomial(b));
  if (r.empty()) return DimBuilder::from(q);
  return DimBuilder::from(q) + DimBuilder::make(DimOp::floor_div, {DimBuilder::from(r), b});
}

Dim ceil_div(const Dim& a, const Dim& b) { return floor_div(a + (b - Dim(1)), b); }

Dim mod(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return mod_floor(a.value_, b.value_);
  if (b.is_constant()) {
    if (b.value_ == 0) throw fail(E::bad_dimension, "dimension {} is taken modulo zero", a.text());
    if (b.value_ < 0) return mod(a * Dim(-1), Dim(mul_checked(b.value_, -1))) * Dim(-1);
    if (b.value_ == 1) return 0;
    return reduced_mod(split(DimBuilder::polynomial(a), b.value_).second, b.value_);
  }
  auto [q, r] = divide(DimBuilder::polynomial(a), DimBuilder::polynomial(b));
  if (r.empty()) return 0;
  return DimBuilder::make(DimOp::mod, {DimBuilder::from(r), b});
}

Dim min(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return std::min(a.value_, b.value_);
  return extremum(DimOp::min, a, b);
}

Dim max(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return std::max(a.value_, b.value_);
  return extremum(DimOp::max, a, b);
}

}  // namespace opfuse
