// Elements that a kernel stored against what they must be and how far from it they may be.
#pragma once

#include <functional>

#include "proof/error_bound.hpp"

namespace opfuse {

/// The share of a group's elements that may lack a bound: they are off and nothing says how far they may be.
inline constexpr double kMostUnclaimed = 0.01;
/// Bounds say nothing above this share of their result's largest number, unless a tie is part of them.
inline constexpr double kVague = 1.0 / 8;
/// A relative error that the interpreter itself may have.
inline constexpr double kOracle = 0x1p-44;

/// One proof of a group.
struct Proof {
  int64_t elements = 0;
  int64_t exact = 0;      ///< of them had to have the very bits
  int64_t outside = 0;    ///< further off than the bound
  int64_t unclaimed = 0;  ///< f32 cannot say: overflow, a divisor that may be 0, an index that may be another
  int64_t vague = 0;      ///< within a bound that says nothing beside their result's largest number
  int64_t typed = 0;      ///< not the exact numbers, but those of the kernel's own type: overflow, swallowed scores
  int64_t ties = 0;       ///< a rounding or comparison near its threshold explains them
  double of_bound = 0;    ///< largest |error| / bound; infinite for a wrong element that had to be exact
  double worst_case = 0;  ///< largest worst-case bound / bound of the sums behind them; printed only
  double got = 0, want = 0, bound = 0;  ///< at the worst element
  int64_t at = -1;                      ///< its index, row-major

  bool ok() const { return outside == 0; }
  int64_t not_judged() const { return unclaimed + vague; }
  bool claimed(double most) const { return static_cast<double>(not_judged()) <= most * static_cast<double>(elements); }
  void merge(const Proof& other);
};

/// Parts of one result under ErrorModel::typed, asked for once an element needs them.
using TypedParts = std::function<std::vector<const BoundedTensor*>()>;

/// `want` in double (or integers); errors from `bounds`, the parts of one result that its launches wrote. `oracle`: a
/// relative error that `want` itself may have. Elements of which `bounds` say nothing are judged by `typed`.
Proof judge(const Tensor& got, const Tensor& want, const std::vector<const BoundedTensor*>& bounds, double oracle,
            const TypedParts& typed = {});

/// How far numbers are off, of their root mean square.
double distance_of(const Tensor& got, const Tensor& want);

/// The parts of one result as one.
BoundedTensor merged(const std::vector<const BoundedTensor*>& bounds);

/// The values of `bounds`, as a tensor.
Tensor values_of(const std::vector<const BoundedTensor*>& bounds);

}  // namespace opfuse
