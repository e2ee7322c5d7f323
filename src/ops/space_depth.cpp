// Both are one strided copy over six axes.
#include "ops/space_depth.hpp"

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "ops/strided_copy.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {
namespace {

/// size / by, which must be exact; symbolic sizes are checked by a run.
Dim divided(const Dim& size, int64_t by, const char* what) {
  if (size.is_constant() && size.value() % by != 0)
    throw fail(E::shape_mismatch, "{} {} is not a multiple of {}", what, size.text(), by);
  assume(DimRule::multiple, size, by, fmt::format("{} is split into blocks", what));
  return floor_div(size, by);
}

/// Keeps blocksize squared in range.
void check_block(int64_t block) {
  if (block < 1 || block > (int64_t{1} << 20)) throw fail(E::bad_attribute, "blocksize is {}", block);
}

OpSpec moving_spec(const char* name, const char* doc) {
  return {.name = name,
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .kind = OpKind::injective,
          .flops_per_element = 0,
          .doc = doc};
}

}  // namespace

OpSpec DepthToSpace::spec() { return moving_spec("depth_to_space", "Channels become blocks of pixels."); }

std::vector<TensorType> DepthToSpace::infer(const Attrs& a, const Inference& in) {
  check_block(a.blocksize);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  in.require_rank(0, 4);
  const Shape& x = in.shape(0);
  return {{in.dtype(0), Shape{x[0], divided(x[1], a.blocksize * a.blocksize, "the number of channels"),
                              x[2] * Dim(a.blocksize), x[3] * Dim(a.blocksize)}}};
}

std::vector<Tensor> DepthToSpace::reference(const Attrs& a, Tensors in, Precision) {
  const Tensor& x = *in[0];
  const int64_t b = a.blocksize, c = x.dim(1) / (b * b), h = x.dim(2), w = x.dim(3), plane = h * w;
  const bool crd = a.mode == DepthToSpaceMode::CRD;
  const int64_t channel = crd ? b * b * plane : plane, row = crd ? b * plane : b * c * plane,
                column = crd ? plane : c * plane;
  const Tensor y = strided_copy(x, {x.dim(0), c, h, b, w, b}, {x.dim(1) * plane, channel, w, row, 1, column});
  return {y.reshaped({x.dim(0), c, h * b, w * b})};
}

OpSpec SpaceToDepth::spec() { return moving_spec("space_to_depth", "Blocks of pixels become channels."); }

std::vector<TensorType> SpaceToDepth::infer(const Attrs& a, const Inference& in) {
  check_block(a.blocksize);
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  in.require_rank(0, 4);
  const Shape& x = in.shape(0);
  return {{in.dtype(0), Shape{x[0], x[1] * Dim(a.blocksize * a.blocksize), divided(x[2], a.blocksize, "the height"),
                              divided(x[3], a.blocksize, "the width")}}};
}

std::vector<Tensor> SpaceToDepth::reference(const Attrs& a, Tensors in, Precision) {
  const Tensor& x = *in[0];
  const int64_t b = a.blocksize, c = x.dim(1), h = x.dim(2), w = x.dim(3);
  const Tensor y = strided_copy(x, {x.dim(0), b, b, c, h / b, w / b}, {c * h * w, w, 1, h * w, b * w, b});
  return {y.reshaped({x.dim(0), c * b * b, h / b, w / b})};
}

}  // namespace opfuse
