// The inside of Dim: shared by its arithmetic (dim.cpp) and its text (dim_text.cpp).
#pragma once

#include <compare>
#include <utility>
#include <vector>

#include "tensor/dim.hpp"

namespace opfuse {

/// symbol: `symbol`. add: two or more terms, constant last. mul: constant factor first (if not 1), then
/// atoms. floor_div, mod, min, max: two arguments.
struct DimNode {
  DimOp op;
  std::string symbol;
  std::vector<Dim> args;
  int64_t nodes = 1;  ///< as a tree: text and comparisons walk shared operands as often as they are read
  int64_t depth = 1;
};

/// An atom is a symbol, floor_div, mod, min or max; a monomial a sorted product of atoms (empty: 1).
using Monomial = std::vector<Dim>;

/// Sum of coefficient * monomial, highest degree first, then by atoms; no zero coefficients.
using Polynomial = std::vector<std::pair<Monomial, int64_t>>;

struct DimBuilder {
  static Dim make(DimOp op, std::vector<Dim> args);
  static Dim symbol(std::string name);
  static Dim from(const Polynomial& p);
  static Polynomial polynomial(const Dim& d);
};

/// A total order on structure: constants, symbols, then the rest.
std::strong_ordering compare(const Dim& a, const Dim& b);

}  // namespace opfuse
