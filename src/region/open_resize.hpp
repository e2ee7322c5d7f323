// An axis of a resize whose extents are open: positions and weights as expressions of the result's coordinate, where a
// table would need the extents.
#pragma once

#include <optional>
#include <vector>

#include "expr/domain.hpp"
#include "ops/resize.hpp"

namespace opfuse {

struct OpenTap {
  Expr at;      ///< i64, inside the axis
  Expr weight;  ///< f64
};

class OpenResizeAxis {
 public:
  /// `scale`: a number, or nothing where it is what `out` is to `in`.
  OpenResizeAxis(const Resize::Attrs& attrs, const Dim& in, const Dim& out, std::optional<double> scale,
                 const Expr& coordinate);
  /// Whether expressions can say what these attributes ask for.
  static bool covers(const Resize::Attrs& attrs, std::optional<double> scale);

  Expr nearest() const;               ///< where the result reads
  std::vector<OpenTap> taps() const;  ///< of linear and cubic

 private:
  const Resize::Attrs& attrs_;
  Expr x_;     ///< the source position, f64
  Expr last_;  ///< i64
  Expr inside(const Expr& at) const;
};

}  // namespace opfuse
