// Relations between open dimensions. A run evaluates every relation; what overflows or divides by zero does not hold.
#include "tensor/dim_rule.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/fail.hpp"
#include "tensor/dim_flag.hpp"

namespace opfuse {
namespace {

thread_local std::vector<DimRelation>* recorded = nullptr;

bool holds(DimRule rule, int64_t a, int64_t b) {
  switch (rule) {
    case DimRule::equal:
      return a == b;
    case DimRule::differs:
      return a != b;
    case DimRule::at_least:
      return a >= b;
    case DimRule::multiple:
      return b != 0 && a % b == 0;
    case DimRule::one_or_equal:
      return a == 1 || a == b;
    case DimRule::broadcast:
      return a == b || a == 1 || b == 1;
  }
  return false;
}

bool all_not_negative(const std::vector<Dim>& dims) {
  return std::all_of(dims.begin(), dims.end(), surely_not_negative);
}

std::string mismatch(const DimRelation& r, const SymbolValues& symbols) {
  std::set<std::string> names;
  r.a.collect_symbols(names);
  r.b.collect_symbols(names);
  std::vector<std::string> values;
  for (const std::string& name : names)
    if (const auto at = symbols.find(name); at != symbols.end())
      values.push_back(fmt::format("{} = {}", name, at->second));
  return fmt::format("{}: {} is needed, and {}", r.what, text_of(r), fmt::join(values, ", "));
}

std::string advice(const DimRelation& r) {
  std::set<std::string> names;
  r.a.collect_symbols(names);
  r.b.collect_symbols(names);
  std::vector<std::string> flags;
  for (const std::string& name : names) flags.push_back(dim_flag(name));
  return fmt::format("give inputs whose sizes meet this; to have it checked when compiling, fix the dimension: {}",
                     fmt::join(flags, " "));
}

bool met(const DimRelation& relation, const SymbolValues& symbols) {
  try {
    return holds(relation, symbols);
  } catch (const Error& error) {
    if (error.diagnostic().name != "bad_dimension") throw;
    return false;
  }
}

}  // namespace

bool surely_not_negative(const Dim& dim) {
  switch (dim.op()) {
    case DimOp::constant:
      return dim.value() >= 0;
    case DimOp::symbol:
      return true;
    case DimOp::add:
    case DimOp::mul:
    case DimOp::floor_div:
    case DimOp::min:
      return all_not_negative(dim.args());
    case DimOp::mod:
      return surely_not_negative(dim.args()[1]);
    case DimOp::max:
      return std::any_of(dim.args().begin(), dim.args().end(), surely_not_negative);
  }
  return false;
}

std::set<std::string> symbols_of(const DimRelation& relation) {
  std::set<std::string> symbols;
  relation.a.collect_symbols(symbols);
  relation.b.collect_symbols(symbols);
  return symbols;
}

std::optional<bool> settled(const DimRelation& r) {
  if (r.a.is_constant() && r.b.is_constant()) return holds(r.rule, r.a.value(), r.b.value());
  switch (r.rule) {
    case DimRule::equal:
      if (r.a == r.b) return true;
      break;
    case DimRule::differs:
      if (r.a == r.b) return false;
      break;
    case DimRule::at_least:
      if (surely_not_negative(r.a - r.b)) return true;
      break;
    case DimRule::multiple:
      if (r.b == Dim(1)) return true;
      break;
    case DimRule::one_or_equal:
      if (r.a == r.b || r.a == Dim(1)) return true;
      break;
    case DimRule::broadcast:
      if (r.a == r.b || r.a == Dim(1) || r.b == Dim(1)) return true;
      break;
  }
  const Dim gap = r.a - r.b;
  if (r.rule == DimRule::equal && gap.is_constant()) return gap.value() == 0;
  return std::nullopt;
}

bool holds(const DimRelation& r, const SymbolValues& symbols) {
  return holds(r.rule, r.a.evaluate(symbols), r.b.evaluate(symbols));
}

std::string text_of(const DimRelation& r) {
  const std::string a = r.a.text(), b = r.b.text();
  switch (r.rule) {
    case DimRule::equal:
      return fmt::format("{} = {}", a, b);
    case DimRule::differs:
      return fmt::format("{} != {}", a, b);
    case DimRule::at_least:
      return fmt::format("{} >= {}", a, b);
    case DimRule::multiple:
      return fmt::format("{} a multiple of {}", a, b);
    case DimRule::one_or_equal:
      return fmt::format("{} = 1 or {} = {}", a, a, b);
    case DimRule::broadcast:
      if (r.a.is_constant()) return fmt::format("{} = {} or {} = 1", b, a, b);
      if (r.b.is_constant()) return fmt::format("{} = {} or {} = 1", a, b, a);
      return fmt::format("{} = {} or one of them 1", a, b);
  }
  return {};
}

Error broken(const DimConstraint& c, const SymbolValues& symbols) {
  Error error = fail(E::shape_mismatch, "{}", mismatch(c.relation, symbols));
  error.node(c.node).op(c.op).hint(advice(c.relation));
  for (const std::string& operand : c.operands) error.operand(operand);
  return error;
}

void check(const std::vector<DimConstraint>& constraints, const SymbolValues& symbols) {
  for (const DimConstraint& c : constraints)
    if (!met(c.relation, symbols)) throw broken(c, symbols);
}

static bool may_stretch(const DimRelation& r) {
  return r.rule == DimRule::broadcast || r.rule == DimRule::one_or_equal;
}

bool any_stretches(const std::vector<DimConstraint>& constraints) {
  return std::any_of(constraints.begin(), constraints.end(),
                     [](const DimConstraint& c) { return may_stretch(c.relation); });
}

bool stretches(const std::vector<DimConstraint>& constraints, const SymbolValues& symbols, const SymbolValues& fixed) {
  return std::any_of(constraints.begin(), constraints.end(), [&](const DimConstraint& c) {
    const DimRelation& r = c.relation;
    if (!may_stretch(r)) return false;
    const Dim a = r.a.substitute(symbols), b = r.b.substitute(symbols);
    if (!a.is_constant() || !b.is_constant() || a == b) return false;
    return fixed.empty() || !settled({r.rule, r.a.substitute(fixed), r.b.substitute(fixed), {}});
  });
}

void assume(DimRule rule, const Dim& a, const Dim& b, std::string_view what) {
  DimRelation relation{rule, a, b, std::string(what)};
  const std::optional<bool> known = settled(relation);
  if (known == true) return;
  if (known == false) throw fail(E::shape_mismatch, "{}: {} is needed", what, text_of(relation));
  if (recorded) recorded->push_back(std::move(relation));
}

DimRecorder::DimRecorder(std::vector<DimRelation>& into) : outer_(recorded) { recorded = &into; }
DimRecorder::~DimRecorder() { recorded = outer_; }

}  // namespace opfuse
