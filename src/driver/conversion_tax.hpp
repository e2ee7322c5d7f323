// Launches that only change the type of one tensor: what a quantised model pays for numbers that its kernels do not
// share. Predicted times, as `explain --why-slow` has them.
#pragma once

#include <string>
#include <vector>

#include "program/program.hpp"
#include "target/target.hpp"

namespace opfuse {

/// One tensor goes in, the same numbers in another type come out: rounding, clamping and scaling, nothing else.
bool only_converts(const Region& region);

struct ConversionTax {
  std::vector<std::string> launches;  ///< names, in their order
  double microseconds = 0, all = 0;   ///< of these launches, of all
  int64_t bytes = 0;                  ///< read and written by them
  std::string text() const;           ///< a line; empty without launches
};
ConversionTax conversion_tax(const Program& program, const TargetInfo& target);

}  // namespace opfuse
