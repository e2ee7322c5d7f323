// Operands whose sums are exact in every order: small integers and powers of two.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.hpp"

namespace opfuse {

class ExactInputs {
 public:
  ExactInputs(const Region& region, uint64_t seed);
  /// A tensor like `real` for a parameter, which is an input or a constant. Integers and booleans stay (they may be
  /// indices), as do numbers that are not small ones (masks). Single numbers become the next power of two, others
  ///   1, 4            where the region divides by them or takes roots, logarithms or powers of them
  ///   +-1, +-2        halves
  ///   +-1 .. +-8      else
  Tensor draw(size_t param, const Tensor& real) const;
  /// A parameter's numbers become so many times larger, and at most two different ones in size.
  void use_multiples(size_t param, int64_t factor) { factor_[param] = factor; }

 private:
  std::vector<bool> positive_;   ///< by parameter
  std::vector<int64_t> factor_;  ///< by parameter
  uint64_t seed_;
};

}  // namespace opfuse
