// Greedy: of each batch and class the boxes above the score threshold, best first; one is kept when its intersection
// over union with every box kept before is at most the threshold.
#include "ops/non_max_suppression.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "ops/defined_size.hpp"

namespace opfuse {
namespace {

struct Box {
  double low[2], high[2];
  double area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

Box box_of(const Reals& boxes, int64_t at, bool by_centre) {
  const double a = boxes[at], b = boxes[at + 1], c = boxes[at + 2], d = boxes[at + 3];
  if (by_centre) return {{a - c / 2, b - d / 2}, {a + c / 2, b + d / 2}};
  return {{std::min(a, c), std::min(b, d)}, {std::max(a, c), std::max(b, d)}};
}

double overlap(const Box& a, const Box& b) {
  double common = 1;
  for (int axis = 0; axis < 2; ++axis)
    common *= std::max(0.0, std::min(a.high[axis], b.high[axis]) - std::max(a.low[axis], b.low[axis]));
  const double together = a.area() + b.area() - common;
  return a.area() > 0 && b.area() > 0 && together > 0 ? common / together : 0;
}

double optional_real(Tensors in, size_t i, double otherwise) {
  return i < in.size() && in[i] && in[i]->elements() > 0 ? in[i]->real(0) : otherwise;
}

}  // namespace

OpSpec NonMaxSuppression::spec() {
  return {.name = "non_max_suppression",
          .inputs = {{"boxes"},
                     {"scores"},
                     optional_port("max_output_boxes_per_class"),
                     optional_port("iou_threshold"),
                     optional_port("score_threshold")},
          .outputs = {{"selected"}},
          .kind = OpKind::shape,
          .flops_per_element = 0,
          .doc = "Boxes that overlap no better one."};
}

std::vector<TensorType> NonMaxSuppression::infer(const Attrs& a, const Inference& in) {
  require_float(in, 0);
  require_float(in, 1);
  if (has_unranked(in)) return unranked(in, DType::i64);
  in.require_rank(0, 3);
  in.require_rank(1, 3);
  const Shape &boxes = in.shape(0), &scores = in.shape(1);
  unify(boxes[0], scores[0], "the batch");
  unify(boxes[1], scores[2], "the number of boxes");
  unify(boxes[2], Dim(4), "the coordinates of a box");
  std::vector<const Tensor*> constants(in.inputs(), nullptr);
  for (size_t i = 0; i < in.inputs(); ++i) {
    constants[i] = in.has(i) ? in.constant(i) : nullptr;
    if (!in.has(i) || constants[i]) continue;
    const auto stay = defined_size(a.defines, 0);
    if (!stay) return unranked(in, DType::i64);
    return {{DType::i64, Shape{*stay, 3}}};
  }
  return {reference(a, constants, Precision::typed)[0].type()};
}

std::vector<Tensor> NonMaxSuppression::reference(const Attrs& a, Tensors in, Precision) {
  const Reals boxes(*in[0]), scores(*in[1]);
  const int64_t batches = in[1]->dim(0), classes = in[1]->dim(1), count = in[1]->dim(2);
  const int64_t most = in.size() > 2 && in[2] && in[2]->elements() > 0 ? in[2]->integer(0) : 0;
  const double threshold = optional_real(in, 3, 0);
  const bool has_least = in.size() > 4 && in[4] && in[4]->elements() > 0;
  const double least = optional_real(in, 4, 0);
  std::vector<int64_t> rows;
  for (int64_t group = 0; group < batches * classes; ++group) {
    const auto score = [&](int64_t i) { return scores[group * count + i]; };
    const auto box = [&](int64_t i) { return box_of(boxes, (group / classes * count + i) * 4, a.center_point_box); };
    std::vector<int64_t> order, kept;
    for (int64_t i = 0; i < count; ++i)
      if (has_least ? score(i) > least : score(i) == score(i)) order.push_back(i);  // never a NaN
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return score(i) > score(j); });
    for (const int64_t i : order) {
      if (static_cast<int64_t>(kept.size()) >= most) break;
      const auto covers = [&](int64_t better) { return overlap(box(better), box(i)) > threshold; };
      if (std::any_of(kept.begin(), kept.end(), covers)) continue;
      kept.push_back(i);
      rows.insert(rows.end(), {group / classes, group % classes, i});
    }
  }
  return {Tensor::from_i64(rows).reshaped({static_cast<int64_t>(rows.size()) / 3, 3})};
}

}  // namespace opfuse
