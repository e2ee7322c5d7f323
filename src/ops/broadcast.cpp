// NumPy broadcasting: shapes are aligned at their last dimension, and a dimension of 1 stretches.
// Two different symbolic dimensions give their maximum: one of them has to be 1 when they differ at run time.
#include <algorithm>

#include "base/fail.hpp"
#include "ops/declare.hpp"

namespace opfuse {
namespace {

/// The common extent, or nothing when they do not fit.
std::optional<Dim> broadcast_dim(const Dim& a, const Dim& b) {
  if (a == b || b == Dim(1)) return a;
  if (a == Dim(1)) return b;
  if (a.is_constant() && b.is_constant()) return std::nullopt;
  if (a.is_constant()) return a;
  if (b.is_constant()) return b;
  return max(a, b);
}

std::optional<int64_t> broadcast_dim(int64_t a, int64_t b) {
  if (a == b || b == 1) return a;
  if (a == 1) return b;
  return std::nullopt;
}

/// Aligns at the end; returns false at the first dimension that does not fit.
template <class D>
bool broadcast_dims(const std::vector<D>& a, const std::vector<D>& b, std::vector<D>& out) {
  const size_t rank = std::max(a.size(), b.size());
  out.assign(rank, D(1));
  for (size_t i = 0; i < rank; ++i) {
    const D x = i + a.size() < rank ? D(1) : a[i + a.size() - rank];
    const D y = i + b.size() < rank ? D(1) : b[i + b.size() - rank];
    auto common = broadcast_dim(x, y);
    if (!common) return false;
    out[i] = *common;
  }
  return true;
}

}  // namespace

Shape broadcast(const Shape& a, const Shape& b) {
  if (!a.ranked || !b.ranked) return Shape::unknown();
  Shape out;
  if (!broadcast_dims(a.dims, b.dims, out.dims))
    throw fail(E::shape_mismatch, "shapes {} and {} do not broadcast", a.text(), b.text())
        .hint("dimensions are aligned at the end; each pair must be equal or contain a 1");
  return out;
}

std::vector<int64_t> broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> out;
  if (!broadcast_dims(a, b, out))
    throw fail(E::shape_mismatch, "shapes {} and {} do not broadcast", Shape::of(a).text(), Shape::of(b).text());
  return out;
}

}  // namespace opfuse
