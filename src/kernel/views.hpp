// What the fast skeletons see in a stage: which read is data, which weights, how the window slides.
// Recognition works on index maps and expressions only; a stage that does not fit says why.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "kernel/coded_weights.hpp"
#include "kernel/element_types.hpp"
#include "region/region.hpp"

namespace opfuse {

/// One data dimension that a window slides over: stride * axis + dilation * tap + offset.
struct SlidingDim {
  int dim = 0;
  int axis = -1;  ///< domain axis, -1 when none
  int tap = -1;   ///< reduce axis (numbered after the domain axes), -1 when none
  int64_t stride = 1, dilation = 1, offset = 0;
  Dim extent = 1;  ///< of the tensor
};

/// Weights of a phase of a transposed convolution: those of tap j lie at stride * j + phase - missing along a
/// dimension, so that in the first `missing` phases tap 0 has none. `tap` -1: there is no other tap.
struct PhaseDim {
  int axis = -1;  ///< domain axis of the phase
  int tap = -1;   ///< reduce axis
  int64_t missing = 0;
};

/// A contraction as the register-tiled skeleton sees it:
///   result(.., vec, .., pixel) = sum over channel, taps of value(data) * weights
struct ContractionView {
  ElementTypes types;
  int data = -1, weights = -1;      ///< read numbers of the stage
  Expr value;                       ///< read(data), or a prologue of it; the guard removed
  bool guarded = false;             ///< taps outside the data contribute nothing
  int64_t padding = 0;              ///< the code that stands for them, of a sum of codes
  int vec = -1;                     ///< domain axis of the output channels
  int pixel = -1;                   ///< domain axis of the register tile, -1: one pixel
  std::vector<int> outer;           ///< the other domain axes
  int channel = -1;                 ///< reduce axis of the channels, -1: one channel per group
  std::vector<int> taps;            ///< the other reduce axes
  std::vector<SlidingDim> sliding;  ///< data dimensions indexed by domain axes other than vec, or by taps
  int data_channel_dim = -1, weights_vec_dim = -1, weights_channel_dim = -1;
  std::vector<PhaseDim> phases;  ///< of the weights
  int64_t group_out = 0;         ///< output channels per group, 0: one group
  std::vector<int> gates;        ///< reads of the weights of the other sums, which multiply the same data

  int factor = -1;  ///< value is data * this read, one per input channel (and image), which weights may have instead
  std::optional<CodedWeights> coded;  ///< what the weights are made of: they do not lie as `types` says, but as codes

  int64_t sums() const { return 1 + static_cast<int64_t>(gates.size()); }
};
std::variant<ContractionView, std::string> view_contraction(const Region& region, int stage);  ///< of f32
/// The same for a stage of one or more sums, of one sum of codes (bytes, added up in i32), or of one of bf16 operands
/// (added up in f32); of several, weights are constants alike in shape and place. Constant weights of f32 data may be
/// f16 or bf16, or codes with scales. Data of f32 products may be f16, as it lies in memory.
std::variant<ContractionView, std::string> view_products(const Region& region, int stage);

/// Taps of more than one extent.
bool has_taps(const Stage& stage, const ContractionView& view);

/// Input channels that one output sums over.
int64_t channel_depth(const Stage& stage, const ContractionView& view);

/// The outer axis of image rows: the last outer axis when it moves a dimension behind the channels.
int row_axis_of(const ContractionView& view);
/// Some stage has an extent of none (a batch of 0, say): nothing to cut into tiles, nothing to divide work by.
bool is_empty(const Region& region);
/// Product of the outer axes but the rows: a symbolic one counts as 1.
int64_t images_of(const Stage& stage, const ContractionView& view);

/// A window (pooling, depthwise): one reduction over taps, lanes along `vec`.
struct WindowView {
  int data = -1;         ///< the sliding read
  Expr value;            ///< of a tap inside the data
  bool guarded = false;  ///< taps outside contribute the identity, they are skipped
  int64_t padding = 0;   ///< of a sum of codes: the code that stands for them; other than 0 it takes part
  int vec = -1, pixel = -1;
  std::vector<int> outer;
  std::vector<int> taps;
  std::vector<SlidingDim> sliding;
};
std::variant<WindowView, std::string> view_window(const Region& region, int stage);

int row_axis_of(const WindowView& view);

/// `e` with in_bounds(read) known: selects on it disappear.
Expr assume_inside(const Expr& e, int read, bool inside);

/// Share of an axis's taps that lie inside the data, whose extent is known; the others need no product.
double inside_share(const SlidingDim& d, int64_t taps, int64_t outputs);

/// Extent of an axis: domain axes first, then reduce axes.
const Dim& axis_extent(const Stage& stage, int axis);

}  // namespace opfuse
