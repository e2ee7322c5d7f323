// Of each batch and class the boxes above the least score, best first: one stays where its intersection over union with
// every box that stays is at most the threshold. In single precision, as engines compute it. The boxes that stay are
// kept by coordinate, so that a candidate is compared with them in vectors.
#include <algorithm>
#include <numeric>

#include "base/fail.hpp"
#include "routine/rows.hpp"

namespace opfuse {
namespace {

struct Box {
  float top, left, bottom, right, area;
};

/// Two corners in any order, or centre, width and height (then "top" is an x: the axes do not matter).
Box box_of(const float* b, bool by_centre) {
  Box box{};
  if (by_centre)
    box = {b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2, 0};
  else
    box = {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3]), 0};
  box.area = (box.bottom - box.top) * (box.right - box.left);
  return box;
}

/// Boxes that stay, by coordinate.
class Kept {
 public:
  void clear() { top_.clear(), left_.clear(), bottom_.clear(), right_.clear(), area_.clear(); }
  void add(const Box& b) {
    top_.push_back(b.top), left_.push_back(b.left), bottom_.push_back(b.bottom), right_.push_back(b.right);
    area_.push_back(b.area);
  }
  /// Some box overlaps `b` by more than the threshold. In blocks, so that the loop has no exit to vectorise around.
  bool covers(const Box& b, float threshold) const {
    constexpr size_t kBlock = 64;
    for (size_t from = 0; from < area_.size(); from += kBlock) {
      const size_t to = std::min(area_.size(), from + kBlock);
      int any = 0;
      for (size_t i = from; i < to; ++i) any |= overlaps(i, b, threshold);
      if (any) return true;
    }
    return false;
  }

 private:
  std::vector<float> top_, left_, bottom_, right_, area_;

  int overlaps(size_t i, const Box& b, float threshold) const {
    const float height = std::min(bottom_[i], b.bottom) - std::max(top_[i], b.top);
    const float width = std::min(right_[i], b.right) - std::max(left_[i], b.left);
    const float common = std::max(height, 0.0F) * std::max(width, 0.0F);
    const float together = area_[i] + b.area - common;
    return (common > 0) & (area_[i] > 0) & (b.area > 0) & (together > 0) & (common / together > threshold);
  }
};

struct Limits {
  int64_t most = 0;
  float threshold = 0, least = 0;
  bool has_least = false;
};

std::vector<int64_t> candidates(const float* scores, int64_t count, const Limits& limits) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < count; ++i)
    if (limits.has_least ? scores[i] > limits.least : scores[i] == scores[i]) order.push_back(i);  // never a NaN
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return scores[a] > scores[b] || (scores[a] == scores[b] && a < b); });
  return order;
}

/// Operand `i` in single precision.
Tensor singles(const Tensor& x) { return x.dtype() == DType::f32 ? x : x.cast(DType::f32); }

const Tensor* given(RoutineOperands operands, size_t i) {
  return i < operands.size() && operands[i] && operands[i]->elements() > 0 ? operands[i] : nullptr;
}

}  // namespace

RoutineResult non_max_suppression_routine(Settings settings, RoutineOperands operands) {
  const Tensor boxes = singles(*operands[0]);
  if (operands.size() < 2 || !operands[1]) throw fail(E::bad_file, "non_max_suppression without scores");
  const Tensor scores = singles(*operands[1]);
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes.dim(2) != 4 || boxes.dim(0) != scores.dim(0) ||
      boxes.dim(1) != scores.dim(2))
    throw fail(E::shape_mismatch, "boxes {} do not go with scores {}", boxes.type().text(), scores.type().text());
  Limits limits;
  if (const Tensor* most = given(operands, 2)) limits.most = most->integer(0);
  if (const Tensor* threshold = given(operands, 3)) limits.threshold = static_cast<float>(threshold->real(0));
  if (const Tensor* least = given(operands, 4))
    limits.least = static_cast<float>(least->real(0)), limits.has_least = true;
  const bool by_centre = !settings.empty() && settings[0] != 0;
  const int64_t classes = scores.dim(1), count = scores.dim(2);
  std::vector<int64_t> rows;
  Kept kept;
  std::vector<Box> own(static_cast<size_t>(count));
  for (int64_t group = 0; limits.most > 0 && group < scores.dim(0) * classes; ++group) {
    const int64_t batch = group / classes;
    if (group % classes == 0)
      for (int64_t i = 0; i < count; ++i)
        own[static_cast<size_t>(i)] = box_of(boxes.view<float>().data() + (batch * count + i) * 4, by_centre);
    kept.clear();
    int64_t stay = 0;
    for (const int64_t i : candidates(scores.view<float>().data() + group * count, count, limits)) {
      const Box& box = own[static_cast<size_t>(i)];
      if (kept.covers(box, limits.threshold)) continue;
      kept.add(box);
      rows.insert(rows.end(), {batch, group % classes, i});
      if (++stay == limits.most) break;
    }
  }
  const auto found = static_cast<int64_t>(rows.size()) / 3;
  return {{Tensor::from_i64(rows).reshaped({found, 3})}, {found}};
}

}  // namespace opfuse
