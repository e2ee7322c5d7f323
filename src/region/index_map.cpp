// Composition substitutes the sum of terms of the outer map into the inner map's terms. A term without
// division distributes. (sum / d) and (sum % m) are resolved by splitting the sum into multiples of the
// divisor, at most one term whose coefficient divides it, and a rest too small to matter:
//   (d*q + c*x + y) / d = q + x / (d/c)          when c | d, 0 <= y < c
//   (m*q + c*x + y) % m = c*(x % (m/c)) + y
#include "region/index_map.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "expr/domain.hpp"
#include "region/map_hash.hpp"

namespace opfuse {
namespace {

std::optional<Dim> exact_quotient(const Dim& a, const Dim& b) {
  if (b == Dim(1)) return a;
  if (a == b) return Dim(1);
  if (a == Dim(0)) return Dim(0);
  if (b == Dim(0)) return std::nullopt;
  if (a.is_constant() && b.is_constant())
    return a.value() % b.value() == 0 ? std::optional<Dim>(Dim(a.value() / b.value())) : std::nullopt;
  const Dim q = floor_div(a, b);
  return q * b == a ? std::optional<Dim>(q) : std::nullopt;
}

bool surely_less_equal(const Dim& a, const Dim& b) {
  if (a == b) return true;
  return a.is_constant() && b.is_constant() && a.value() <= b.value();
}

/// Number of values a term's quotient takes (without its coefficient).
Dim extent_of(const IndexTerm& term, const std::vector<Dim>& extents) {
  if (!(term.mod == Dim(0))) return term.mod;
  return ceil_div(extents[term.axis], term.div);
}

/// Drops a modulo that cannot bite and a quotient that is always zero.
void add_simplified(std::vector<IndexTerm>& terms, IndexTerm term, const std::vector<Dim>& extents) {
  const Dim reach = ceil_div(extents[term.axis], term.div);
  if (reach == Dim(1) || term.mod == Dim(1) || term.coef == Dim(0)) return;
  if (!(term.mod == Dim(0)) && surely_less_equal(reach, term.mod)) term.mod = Dim(0);
  terms.push_back(std::move(term));
}

/// A sum split for division by `d`: multiples of d, one term to split, and the small rest.
struct Split {
  std::vector<IndexTerm> multiples, rest;
  std::optional<IndexTerm> middle;
};

std::optional<Split> split_sum(const IndexExpr& sum, const Dim& d, const std::vector<Dim>& extents) {
  if (!(sum.offset == Dim(0))) return std::nullopt;
  Split split;
  std::vector<IndexTerm> others;
  for (const IndexTerm& term : sum.terms) {
    if (term.coef.is_constant() && term.coef.value() < 0) return std::nullopt;
    (exact_quotient(term.coef, d) ? split.multiples : others).push_back(term);
  }
  auto total = [&](const std::vector<IndexTerm>& terms) {
    Dim sum_of = 1;  // one more than the largest value
    for (const IndexTerm& t : terms) sum_of = sum_of + t.coef * (extent_of(t, extents) - Dim(1));
    return sum_of;
  };
  if (surely_less_equal(total(others), d)) {
    split.rest = others;
    return split;
  }
  for (size_t i = 0; i < others.size(); ++i) {
    if (!exact_quotient(d, others[i].coef)) continue;
    std::vector<IndexTerm> rest = others;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    if (!surely_less_equal(total(rest), others[i].coef)) continue;
    split.middle = others[i];
    split.rest = rest;
    return split;
  }
  return std::nullopt;
}

std::optional<IndexExpr> divide(const IndexExpr& sum, const Dim& d, const std::vector<Dim>& extents) {
  if (d == Dim(1)) return sum;
  const std::optional<Split> split = split_sum(sum, d, extents);
  if (!split) return std::nullopt;
  IndexExpr result;
  for (IndexTerm term : split->multiples) {
    term.coef = *exact_quotient(term.coef, d);
    result.terms.push_back(std::move(term));
  }
  if (split->middle) {
    IndexTerm term = *split->middle;
    const Dim by = *exact_quotient(d, term.coef);
    if (!(term.mod == Dim(0))) {
      const auto mod = exact_quotient(term.mod, by);
      if (!mod) return std::nullopt;
      term.mod = *mod;
    }
    term.div = term.div * by;
    term.coef = 1;
    add_simplified(result.terms, std::move(term), extents);
  }
  return result;
}

std::optional<IndexExpr> modulo(const IndexExpr& sum, const Dim& m, const std::vector<Dim>& extents) {
  if (m == Dim(0)) return sum;
  const std::optional<Split> split = split_sum(sum, m, extents);
  if (!split) return std::nullopt;
  IndexExpr result;
  result.terms = split->rest;
  if (split->middle) {
    IndexTerm term = *split->middle;
    const Dim by = *exact_quotient(m, term.coef);
    if (!(term.mod == Dim(0)) && !exact_quotient(term.mod, by)) return std::nullopt;
    term.mod = by;
    add_simplified(result.terms, std::move(term), extents);
  }
  return result;
}

Expr quotient_value(Expr value, const Dim& div, const Dim& mod) {
  if (!(div == Dim(1))) value = value / dim_value(div);
  if (!(mod == Dim(0))) value = opfuse::mod(value, dim_value(mod));
  return value;
}

Expr scaled_value(const Dim& coef, const Expr& value) { return coef == Dim(1) ? value : dim_value(coef) * value; }

/// Adds coef * value to a sum that may be empty.
void accumulate(Expr& sum, const Expr& value) { sum = sum ? sum + value : value; }

IndexExpr as_dynamic(const IndexExpr& inner, const IndexMap& outer) {
  Expr sum;
  if (inner.dynamic) {
    sum = inner.dynamic.map_leaves(
        [&](const Expr& leaf) { return leaf.op() == ExprOp::coord ? index_value(outer.dims[leaf.index()]) : leaf; });
  } else {
    for (const IndexTerm& t : inner.terms)
      accumulate(sum, scaled_value(t.coef, quotient_value(index_value(outer.dims[t.axis]), t.div, t.mod)));
    if (!sum || !(inner.offset == Dim(0))) accumulate(sum, dim_value(inner.offset));
  }
  IndexExpr result;
  result.dynamic = sum;
  return result;
}

/// Adds equal axes' terms together: 2*a1 + a1 is 3*a1.
void merge_terms(std::vector<IndexTerm>& terms) {
  std::vector<IndexTerm> merged;
  for (const IndexTerm& term : terms) {
    auto same = std::find_if(merged.begin(), merged.end(), [&](const IndexTerm& t) {
      return t.axis == term.axis && t.div == term.div && t.mod == term.mod;
    });
    if (same == merged.end())
      merged.push_back(term);
    else
      same->coef = same->coef + term.coef;
  }
  // x/d*d + x%d is x: what a split followed by its merge leaves.
  for (size_t i = 0; i < merged.size(); ++i)
    for (size_t j = 0; j < merged.size(); ++j) {
      const IndexTerm &high = merged[i], &low = merged[j];
      if (i == j || high.axis != low.axis || low.mod == Dim(0) || !(high.div == low.div * low.mod)) continue;
      if (!(high.coef == low.coef * low.mod)) continue;
      IndexTerm whole = low;
      whole.mod = high.mod == Dim(0) ? Dim(0) : high.mod * low.mod;
      merged[std::min(i, j)] = whole;
      merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
      terms = merged;
      return merge_terms(terms);
    }
  terms = merged;
}

IndexExpr substitute(const IndexExpr& inner, const IndexMap& outer, const std::vector<Dim>& extents) {
  if (inner.dynamic) return as_dynamic(inner, outer);
  IndexExpr result;
  result.offset = inner.offset;
  for (const IndexTerm& t : inner.terms) {
    const IndexExpr& axis = outer.dims[t.axis];
    if (axis.dynamic) return as_dynamic(inner, outer);
    std::optional<IndexExpr> part = divide(axis, t.div, extents);
    if (part) part = modulo(*part, t.mod, extents);
    if (!part) return as_dynamic(inner, outer);
    for (IndexTerm term : part->terms) {
      term.coef = term.coef * t.coef;
      result.terms.push_back(std::move(term));
    }
    result.offset = result.offset + t.coef * part->offset;
  }
  merge_terms(result.terms);
  return result;
}

/// Map of one group of a reshape: result dims [r0, r1) and operand dims [s0, s1) of equal product.
class ReshapeGroup {
 public:
  ReshapeGroup(const Shape& result, const Shape& operand) : result_(result), operand_(operand) {}

  void append(size_t r0, size_t r1, size_t s0, size_t s1, IndexMap& map) const {
    if (merge(r0, r1, s0, s1, map) || atoms(r0, r1, s0, s1, map)) return;
    Expr linear = dim_value(0);
    for (size_t r = r0; r < r1; ++r) linear = linear * dim_value(result_[r]) + Expr::coord(static_cast<int>(r));
    Dim stride = 1;
    for (size_t s = s0; s < s1; ++s) stride = stride * operand_[s];
    for (size_t s = s0; s < s1; ++s) {
      stride = operand_[s] == Dim(0) ? Dim(1) : floor_div(stride, operand_[s]);
      IndexExpr index;
      index.dynamic = quotient_value(linear, stride, s == s0 ? Dim(0) : operand_[s]);
      map.dims.push_back(std::move(index));
    }
  }

 private:
  const Shape& result_;
  const Shape& operand_;

  /// One dimension on either side: works with symbols.
  bool merge(size_t r0, size_t r1, size_t s0, size_t s1, IndexMap& map) const {
    if (r1 - r0 > 1 && s1 - s0 > 1) return false;
    if (s1 - s0 <= 1) {
      IndexExpr index;
      for (size_t r = r0; r < r1; ++r) {
        Dim coef = 1;
        for (size_t k = r + 1; k < r1; ++k) coef = coef * result_[k];
        if (!(result_[r] == Dim(1))) index.terms.push_back({coef, static_cast<int>(r)});
      }
      if (s1 > s0) map.dims.push_back(std::move(index));
      return true;
    }
    for (size_t s = s0; s < s1; ++s) {
      IndexExpr index;
      Dim div = 1;
      for (size_t k = s + 1; k < s1; ++k) div = div * operand_[k];
      if (r1 > r0 && !(operand_[s] == Dim(1)))
        add_simplified(index.terms, {1, static_cast<int>(r0), div, s == s0 ? Dim(0) : operand_[s]}, result_.dims);
      map.dims.push_back(std::move(index));
    }
    return true;
  }

  /// Both sides refined to common factors, innermost first; constants only.
  bool atoms(size_t r0, size_t r1, size_t s0, size_t s1, IndexMap& map) const {
    for (size_t r = r0; r < r1; ++r)
      if (!result_[r].is_constant() || result_[r].value() == 0) return false;
    for (size_t s = s0; s < s1; ++s)
      if (!operand_[s].is_constant()) return false;
    std::vector<IndexExpr> dims(s1 - s0);
    size_t r = r1, s = s1;
    int64_t left_r = 1, left_s = 1, div = 1, coef = 1;
    while (true) {
      while (left_r == 1 && r > r0) left_r = result_[--r].value(), div = 1;
      while (left_s == 1 && s > s0) left_s = operand_[--s].value(), coef = 1;
      if (left_r == 1 && left_s == 1) break;
      const int64_t atom = std::min(left_r, left_s);
      if (atom <= 0 || left_r % atom != 0 || left_s % atom != 0) return false;
      const bool whole = left_r == atom;
      dims[s - s0].terms.push_back({coef, static_cast<int>(r), div, whole ? Dim(0) : Dim(atom)});
      left_r /= atom, left_s /= atom;
      div *= atom, coef *= atom;
    }
    for (IndexExpr& dim : dims) map.dims.push_back(std::move(dim));
    return true;
  }
};

}  // namespace

Expr dim_value(const Dim& dim) {
  return dim.is_constant() ? Expr::integer(DType::i64, dim.value()) : Expr::extent(dim);
}

Expr index_value(const IndexExpr& index) {
  if (index.dynamic) return index.dynamic;
  Expr sum;
  for (const IndexTerm& t : index.terms)
    accumulate(sum, scaled_value(t.coef, quotient_value(Expr::coord(t.axis), t.div, t.mod)));
  if (!sum || !(index.offset == Dim(0))) accumulate(sum, dim_value(index.offset));
  return sum;
}

uint64_t hash_of(const IndexMap& map) {
  uint64_t hash = map.dims.size();
  const auto add = [&](const Dim& d) {
    hash = hash * 0x9e3779b97f4a7c15 + (d.is_constant() ? static_cast<uint64_t>(d.value()) : ~uint64_t{0});
  };
  for (const IndexExpr& index : map.dims) {
    add(index.offset);
    for (const IndexTerm& t : index.terms) add(t.axis), add(t.coef), add(t.div), add(t.mod);
  }
  return hash;
}

bool has_dynamic(const IndexMap& map) {
  return std::any_of(map.dims.begin(), map.dims.end(), [](const IndexExpr& d) { return static_cast<bool>(d.dynamic); });
}

IndexMap compose(const IndexMap& inner, const IndexMap& outer, const std::vector<Dim>& extents) {
  IndexMap map;
  for (const IndexExpr& dim : inner.dims) map.dims.push_back(substitute(dim, outer, extents));
  return map;
}

IndexMap reshape_map(const Shape& result, const Shape& operand) {
  const ReshapeGroup groups(result, operand);
  IndexMap map;
  if (result.elements() == Dim(0)) {  // nothing to read
    map.dims.resize(operand.rank());
    return map;
  }
  size_t r = 0, s = 0;
  while (r < result.rank() || s < operand.rank()) {
    const size_t r0 = r, s0 = s;
    Dim left = r < result.rank() ? result[r++] : Dim(1);
    Dim right = s < operand.rank() ? operand[s++] : Dim(1);
    while (!(left == right)) {
      const bool grow_left = surely_less_equal(left, right) || exact_quotient(right, left).has_value();
      if (r < result.rank() && (grow_left || s >= operand.rank()))
        left = left * result[r++];
      else if (s < operand.rank())
        right = right * operand[s++];
      else
        break;
    }
    groups.append(r0, r, s0, s, map);
  }
  return map;
}

}  // namespace opfuse
