// An expression flattened for evaluation in lanes, with errors (proof/error_rules.hpp).
#pragma once

#include <vector>

#include "proof/error_rules.hpp"
#include "proof/lanes.hpp"
#include "region/tape.hpp"

namespace opfuse {

/// How the numbers of a region come about.
struct ErrorModel {
  /// Constants and literals were folded in double and rounded once: constants are off by half an ULP, literals, which
  /// regions have in double, by what rounding takes from them. False: a kernel is compared with its own region, on the
  /// very operands it has.
  bool folded = true;
  bool tables = false;  ///< activations by tables (docs/accuracy.md)
  /// Sums are the kernel's own: rounded to steps of their type, infinite where they leave it. Such numbers are far from
  /// the exact ones where a mask swallows a score, but known.
  bool typed = false;
  double bias_code = 0;  ///< the largest of a bias that sums of codes have (proof/bias_codes.hpp)
};

/// What leaves of an expression are in the lanes at hand.
class LaneLeaves {
 public:
  virtual ~LaneLeaves() = default;
  virtual void load(int read, Lanes& out) = 0;  ///< lanes outside the tensor are marked
  virtual void in_bounds(int read, Lanes& out) = 0;
  virtual void coord(int axis, Lanes& out) = 0;
  virtual void result(int reduction, Lanes& out) = 0;
  virtual void swallowed() = 0;  ///< a sum of the expression swallows an addend (Lanes::swallows)
};

class LaneTape {
 public:
  LaneTape() = default;
  LaneTape(const Expr& expr, const SymbolValues& symbols, const ErrorModel& model);
  bool empty() const { return steps_.empty(); }
  /// The value stays in `slots` until the next call.
  const Lanes& run(LaneLeaves& leaves, int count, std::vector<Lanes>& slots) const;

 private:
  struct Step : FlatStep {
    double real = 0, error = 0;  ///< of a constant
    int64_t integer = 0;
    OperationNote note;
    bool sums_codes = false;  ///< a cast of a sum of codes, whose addends had scales of their own
    double bias_code = 0;
  };
  static void set_constant(Step& s, const Expr& e, const ErrorModel& model);
  void constant(const Step& s, int count, Lanes& out) const;
  void add_scales(const Step& cast, const std::vector<Lanes>& slots, int count, Lanes& out) const;
  std::vector<Step> steps_;
};

}  // namespace opfuse
