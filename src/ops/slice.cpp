// Slice. ONNX writes "to the end" as a huge number, so positions saturate before any arithmetic.
#include "ops/slice.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "ops/moved_dims.hpp"
#include "ops/strided_copy.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {
namespace {

constexpr int64_t kFar = int64_t{1} << 31;  // beyond any extent: the end in that direction

/// Ranges as given: one entry per listed axis.
struct Ranges {
  std::vector<Dim> starts, ends;
  std::vector<int64_t> axes, steps;
};

/// Fills defaults and checks that the lists agree.
Ranges checked(Ranges r, size_t rank) {
  if (r.starts.size() != r.ends.size())
    throw fail(E::bad_attribute, "{} starts but {} ends", r.starts.size(), r.ends.size());
  const size_t n = r.starts.size();
  if (r.axes.empty())
    for (size_t i = 0; i < n; ++i) r.axes.push_back(static_cast<int64_t>(i));
  if (r.steps.empty()) r.steps.assign(n, 1);
  if (r.axes.size() != n || r.steps.size() != n)
    throw fail(E::bad_attribute, "{} starts, {} axes and {} steps", n, r.axes.size(), r.steps.size());
  for (int64_t& axis : r.axes) axis = static_cast<int64_t>(normalize_axis(axis, rank, "a sliced axis"));
  std::vector<int64_t> sorted = r.axes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw fail(E::bad_attribute, "axes {} name the same axis twice", text_of(r.axes));
  for (int64_t step : r.steps)
    if (step == 0) throw fail(E::bad_attribute, "a step is 0");
  return r;
}

Ranges ranges_of(const Slice::Attrs& a, const Inference& in) {
  Ranges r{.starts = {a.starts.begin(), a.starts.end()},
           .ends = {a.ends.begin(), a.ends.end()},
           .axes = a.axes,
           .steps = {}};
  if (in.has(1)) r.starts = in.require_dims(1, "starts");
  if (in.has(2)) r.ends = in.require_dims(2, "ends");
  if (in.has(3)) r.axes = in.integers(3, "axes");
  if (in.has(4)) r.steps = in.integers(4, "steps");
  return checked(std::move(r), in.shape(0).rank());
}

Ranges ranges_of(const Slice::Attrs& a, Tensors in) {
  const auto given = [&](size_t i) { return i < in.size() && in[i]; };
  const auto dims = [](const std::vector<int64_t>& v) { return std::vector<Dim>(v.begin(), v.end()); };
  Ranges r{.starts = dims(given(1) ? in[1]->to_i64() : a.starts),
           .ends = dims(given(2) ? in[2]->to_i64() : a.ends),
           .axes = given(3) ? in[3]->to_i64() : a.axes,
           .steps = given(4) ? in[4]->to_i64() : std::vector<int64_t>{}};
  return checked(std::move(r), in[0]->rank());
}

/// A position clamped to [low, high] where either it or the size is symbolic.
Dim clamp_position(const Dim& at, const Dim& size, const Dim& low, const Dim& high) {
  if (!at.is_constant()) return min(max(at, low), high);  // symbolic positions count from the start
  if (at.value() >= kFar) return high;
  if (at.value() <= -kFar) return low;
  if (at.value() < 0) return size + at == high ? high : max(size + at, low);
  return at.value() == 0 && low == Dim(0) ? Dim(0) : min(at, high);
}

/// No extents make it positive, as -n of the last n elements.
bool counts_from_end(const Dim& at) {
  return !at.is_constant() && settled({DimRule::at_least, Dim(0) - at, Dim(0), {}}) == true;
}

/// What a run checks: with the sign, the end that a computed position counts from would change.
void assume_end(const Dim& at, int64_t step) {
  if (at.is_constant()) return;
  if (step > 0 && counts_from_end(at))
    return assume(DimRule::at_least, Dim(0) - at, 1, "a computed position counts from the end");
  assume(DimRule::at_least, at, 0, "a computed position counts from the start");
}

Dim count_of(const Dim& start, const Dim& end, int64_t step, const Dim& size) {
  if (start.is_constant() && end.is_constant() && size.is_constant())
    return slice_axis(start.value(), end.value(), step, size.value()).count;
  assume_end(start, step);
  assume_end(end, step);
  const Dim low = step > 0 ? Dim(0) : Dim(-1), high = step > 0 ? size : size - 1;
  const Dim least = step > 0 ? Dim(0) : min(Dim(0), high);  // of nothing, -1
  const Dim first = clamp_position(position_from_start(start, step, size), size, least, high);
  const Dim last = clamp_position(position_from_start(end, step, size), size, low, high);
  const Dim span = step > 0 ? last - first : first - last;
  if (step < -kFar || step > kFar) return min(max(span, Dim(0)), Dim(1));
  const Dim count = ceil_div(span, step > 0 ? step : -step);
  return count == size ? count : max(count, Dim(0));
}

}  // namespace

Dim position_from_start(const Dim& at, int64_t step, const Dim& size) {
  return step > 0 && counts_from_end(at) ? max(size + at, Dim(0)) : at;
}

SliceAxis slice_axis(int64_t start, int64_t end, int64_t step, int64_t size) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto position = [&](int64_t at, int64_t least) {
    if (at < 0) at = at < -size ? -size - 1 : at;
    if (at < 0) at += size;  // -1 when before the start
    return std::clamp(at, std::min(least, high), high);
  };
  SliceAxis s{.start = position(start, 0), .step = step, .count = 0};
  const int64_t last = position(end, low);
  const int64_t span = step > 0 ? last - s.start : s.start - last;
  // Computed without negating the step: it may be the smallest integer.
  if (span > 0) s.count = 1 + (span - 1) / (step > 0 ? step : -std::max(step, -kFar));
  if (s.count == 0) s.start = 0;
  return s;
}

OpSpec Slice::spec() {
  return {
      .name = "slice",
      .inputs = {{"x"}, optional_port("starts"), optional_port("ends"), optional_port("axes"), optional_port("steps")},
      .outputs = {{"y"}},
      .kind = OpKind::injective,
      .flops_per_element = 0,
      .doc = "Every step-th element of a range along some axes.",
      .moves = Moves::places};
}

std::vector<TensorType> Slice::infer(const Attrs& a, const Inference& in) {
  if (!in.shape(0).ranked) return unranked(in, in.dtype(0));
  Shape y = in.shape(0);
  const Ranges r = ranges_of(a, in);
  for (size_t i = 0; i < r.axes.size(); ++i) {
    Dim& size = y[static_cast<size_t>(r.axes[i])];
    size = count_of(r.starts[i], r.ends[i], r.steps[i], size);
  }
  return {{in.dtype(0), y}};
}

std::vector<Tensor> Slice::reference(const Attrs& a, Tensors in, Precision) {
  const Tensor& x = *in[0];
  const Ranges r = ranges_of(a, in);
  std::vector<int64_t> sizes = x.sizes(), pitch = dense_strides(x.sizes());
  int64_t offset = 0;
  for (size_t i = 0; i < r.axes.size(); ++i) {
    const auto axis = static_cast<size_t>(r.axes[i]);
    const SliceAxis s = slice_axis(r.starts[i].value(), r.ends[i].value(), r.steps[i], sizes[axis]);
    sizes[axis] = s.count;
    offset += s.start * pitch[axis];
    pitch[axis] *= s.count > 1 ? s.step : 1;
  }
  return {strided_copy(x, sizes, pitch, offset)};
}

std::optional<std::vector<Dim>> Slice::dims(const Attrs& a, const Inference& in) { return moved_dims<Slice>(a, in); }

}  // namespace opfuse
