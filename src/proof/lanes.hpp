// One value of an expression at up to 64 neighbouring points: the number in double, and how far from it a kernel's
// number may be.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "tensor/dtype.hpp"

namespace opfuse {

/// How far below and above a number another may lie. Roundings reach to both sides; a step that a tie may have taken
/// the other way, to one: its far end is a number of steps, so a second rounding finds the ties that lie there.
struct Reach {
  double below = 0, above = 0;

  static Reach both(double e) { return {e, e}; }
  static Reach anywhere() { return both(std::numeric_limits<double>::infinity()); }
  bool none() const { return below == 0 && above == 0; }
  double most() const { return std::max(below, above); }
  Reach operator+(const Reach& other) const { return {below + other.below, above + other.above}; }
  Reach operator-() const { return {above, below}; }
  Reach& operator+=(const Reach& other) { return *this = *this + other; }
};

/// inf - inf and 0 * inf of errors: nothing is claimed.
inline double claimed(double e) { return e == e ? e : std::numeric_limits<double>::infinity(); }
inline Reach claimed(const Reach& e) { return {claimed(e.below), claimed(e.above)}; }

struct Lanes {
  static constexpr int kCount = 64;

  DType dtype = DType::f32;
  bool certain = true;                  ///< every error is 0
  bool inside = true;                   ///< no lane depends on a read outside its tensor
  bool swallows = false;                ///< a sum whose rounding is much of an addend, or a number beyond the type
  std::array<double, kCount> value;     ///< of float dtypes
  std::array<int64_t, kCount> integer;  ///< of the others
  std::array<Reach, kCount> error;      ///< meaningless while `certain`
  std::array<bool, kCount> tie;         ///< the error holds a step: a rounding or comparison near its threshold
  std::array<bool, kCount> outside;     ///< meaningless while `inside`

  double real(int lane) const {
    const auto at = static_cast<size_t>(lane);
    if (is_float(dtype)) return value[at];
    return dtype == DType::u64 ? static_cast<double>(static_cast<uint64_t>(integer[at]))
                               : static_cast<double>(integer[at]);
  }
  Reach error_of(int lane) const { return certain ? Reach() : error[static_cast<size_t>(lane)]; }
  bool tie_of(int lane) const { return !certain && tie[static_cast<size_t>(lane)]; }
  bool outside_of(int lane) const { return !inside && outside[static_cast<size_t>(lane)]; }

  /// Lanes without errors, inside, of a type; values are not set.
  void reset(DType type) {
    dtype = type;
    certain = inside = true;
    swallows = false;
  }
  void set_error(int lane, const Reach& e, bool step) {
    if (certain) {
      if (e.none()) return;
      error.fill({});
      tie.fill(false);
      certain = false;
    }
    error[static_cast<size_t>(lane)] = e;
    tie[static_cast<size_t>(lane)] = step;
  }
  void set_outside(int lane) {
    if (inside) outside.fill(false);
    inside = false;
    outside[static_cast<size_t>(lane)] = true;
  }
};

}  // namespace opfuse
