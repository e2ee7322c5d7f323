// One value of an expression at up to 64 neighbouring points: the number in double, and how far from it a kernel's
// number may be.
#pragma once

#include <array>
#include <cstdint>

#include "tensor/dtype.hpp"

namespace opfuse {

struct Lanes {
  static constexpr int kCount = 64;

  DType dtype = DType::f32;
  bool certain = true;                  ///< every error is 0
  bool inside = true;                   ///< no lane depends on a read outside its tensor
  std::array<double, kCount> value;     ///< of float dtypes
  std::array<int64_t, kCount> integer;  ///< of the others
  std::array<double, kCount> error;     ///< meaningless while `certain`
  std::array<bool, kCount> tie;         ///< the error holds a step: a rounding or comparison near its threshold
  std::array<bool, kCount> outside;     ///< meaningless while `inside`

  double real(int lane) const {
    const auto at = static_cast<size_t>(lane);
    if (is_float(dtype)) return value[at];
    return dtype == DType::u64 ? static_cast<double>(static_cast<uint64_t>(integer[at]))
                               : static_cast<double>(integer[at]);
  }
  double error_of(int lane) const { return certain ? 0 : error[static_cast<size_t>(lane)]; }
  bool tie_of(int lane) const { return !certain && tie[static_cast<size_t>(lane)]; }
  bool outside_of(int lane) const { return !inside && outside[static_cast<size_t>(lane)]; }

  /// Lanes without errors, inside, of a type; values are not set.
  void reset(DType type) {
    dtype = type;
    certain = inside = true;
  }
  void set_error(int lane, double e, bool step) {
    if (certain) {
      if (e == 0) return;
      error.fill(0);
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
