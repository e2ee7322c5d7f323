// Dimensions under values of their symbols.
#include <fmt/format.h>

#include "base/fail.hpp"
#include "tensor/dim.hpp"
#include "tensor/dim_flag.hpp"

namespace opfuse {

Dim Dim::substitute(const SymbolValues& symbols) const {
  if (is_constant()) return *this;
  if (op() == DimOp::symbol) {
    auto found = symbols.find(symbol_name());
    return found == symbols.end() ? *this : Dim(found->second);
  }
  Dim result = args()[0].substitute(symbols);
  for (size_t i = 1; i < args().size(); ++i) {
    const Dim next = args()[i].substitute(symbols);
    switch (op()) {
      case DimOp::add:
        result = result + next;
        break;
      case DimOp::mul:
        result = result * next;
        break;
      case DimOp::floor_div:
        result = floor_div(result, next);
        break;
      case DimOp::mod:
        result = mod(result, next);
        break;
      case DimOp::min:
        result = min(result, next);
        break;
      default:
        result = max(result, next);
        break;
    }
  }
  return result;
}

int64_t Dim::evaluate(const SymbolValues& symbols) const {
  if (is_constant()) return value_;
  std::set<std::string> names;
  collect_symbols(names);
  for (const std::string& name : names) {
    if (!symbols.contains(name)) {
      throw fail(E::missing_dimension, "dimension {} has no value", name).hint("pass " + dim_flag(name));
    }
  }
  return substitute(symbols).value();
}

void Dim::collect_symbols(std::set<std::string>& into) const {
  if (op() == DimOp::symbol) into.insert(symbol_name());
  for (const Dim& arg : args()) arg.collect_symbols(into);
}

}  // namespace opfuse
