// Walking sliding windows in reference kernels.
#pragma once

#include <algorithm>
#include <vector>

#include "ops/window.hpp"

namespace opfuse {

/// Outputs of [spatial...] windows in row-major order, and the taps of each that lie inside the input.
class WindowWalk {
 public:
  explicit WindowWalk(std::vector<WindowSizes> axes) : axes_(std::move(axes)), pitch_(axes_.size(), 1) {
    for (size_t i = axes_.size(); i-- > 1;) pitch_[i - 1] = pitch_[i] * axes_[i].in;
    for (const WindowSizes& a : axes_) outputs_ *= a.out;
    for (const WindowSizes& a : axes_) inputs_ *= a.in;
  }
  int64_t outputs() const { return outputs_; }
  int64_t inputs() const { return inputs_; }
  const std::vector<WindowSizes>& axes() const { return axes_; }
  /// Offset when the first spatial axis counts fastest.
  int64_t column_major(int64_t offset) const {
    int64_t result = 0, pitch = 1;
    for (size_t i = 0; i < axes_.size(); ++i) {
      result += offset / pitch_[i] % axes_[i].in * pitch;
      pitch *= axes_[i].in;
    }
    return result;
  }

  /// Calls visit(offset) for every tap of output `o` inside the plane, row-major.
  template <class F>
  void for_each_tap(int64_t o, F&& visit) const {
    walk(0, split(o), 0, visit);
  }
  /// Taps of output `o` inside the plane with its padding.
  int64_t padded_taps(int64_t o) const {
    const std::vector<int64_t> at = split(o);
    int64_t count = 1;
    for (size_t i = 0; i < axes_.size(); ++i) {
      const WindowSizes& a = axes_[i];
      const int64_t room = a.in + a.pad_end + a.pad_begin - at[i] * a.stride;
      count *= std::clamp<int64_t>((room + a.dilation - 1) / a.dilation, 0, a.kernel);
    }
    return count;
  }

 private:
  std::vector<int64_t> split(int64_t o) const {
    std::vector<int64_t> at(axes_.size());
    for (size_t i = axes_.size(); i-- > 0; o /= axes_[i].out) at[i] = o % axes_[i].out;
    return at;
  }
  template <class F>
  void walk(size_t axis, const std::vector<int64_t>& at, int64_t offset, F&& visit) const {
    if (axis == axes_.size()) return visit(offset);
    const WindowSizes& a = axes_[axis];
    const int64_t last = a.last_tap(at[axis]);
    for (int64_t t = a.first_tap(at[axis]); t < last; ++t)
      walk(axis + 1, at, offset + (at[axis] * a.stride - a.pad_begin + t * a.dilation) * pitch_[axis], visit);
  }

  std::vector<WindowSizes> axes_;
  std::vector<int64_t> pitch_;
  int64_t outputs_ = 1, inputs_ = 1;
};

}  // namespace opfuse
