// Recomposition: exporters' spellings become the operators a person would name. And conversions: equal rewrites that
// let later stages see more. All return whether they changed the graph; `report` (may be null) receives the reasons.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "match/matcher.hpp"
#include "passes/report.hpp"

namespace opfuse {

/// One way to write an operator.
struct Spelling {
  std::string op;    ///< "gelu"
  std::string form;  ///< "x * 0.5 * (1 + erf(x / sqrt 2))"
  Pattern pattern;   ///< starts at any("x")
  std::vector<MatchPredicate> where;
  /// Attributes when the single operator is bit for bit the same; otherwise the nodes become a composite's body.
  std::function<AttrMap(const Match&)> exact;
};

/// The catalogue of spellings, longest first where one contains another.
const std::vector<Spelling>& activation_spellings();
const std::vector<Spelling>& norm_spellings();
const std::vector<Spelling>& attention_spellings();
const std::vector<Spelling>& movement_spellings();

/// x[start : start + count] along one axis of known size, by constant bounds and steps of 1; else nothing.
struct AxisSlice {
  size_t axis = 0;
  int64_t start = 0, count = 0, size = 0;
};
std::optional<AxisSlice> slice_of_one_axis(const Node& slice);

/// The reductions with these bindings run over the last axis alone and keep it as 1.
MatchPredicate over_last_axis(std::vector<std::string> names);

/// relu, relu6, leaky_relu, elu, gelu, silu, hard_swish, hard_sigmoid; mish and quick_gelu.
bool recompose_activations(Graph& graph, RewriteReport* report = nullptr);
/// layer_norm, rms_norm, l2_norm and softmax from their chains of primitives.
bool recompose_norms(Graph& graph, RewriteReport* report = nullptr);
/// attention: softmax(q k * s + mask) v as one composite (match/attention.hpp).
bool recompose_attention(Graph& graph, RewriteReport* report = nullptr);
/// channel_shuffle, window_partition, window_reverse from reshape -> transpose -> reshape; roll from two slices.
bool recompose_movement(Graph& graph, RewriteReport* report = nullptr);
/// Conv -> Add(per-channel constant) is a bias; Conv -> Mul [-> Add] by per-channel constants is batch_norm.
bool recompose_conv_affine(Graph& graph, RewriteReport* report = nullptr);

/// average_pool of 1x1 windows, global pooling of a 1x1 map: nothing happens.
bool remove_identity_pools(Graph& graph, RewriteReport* report = nullptr);
/// A border of zeros around what is never negative, in front of a max pool: the pool pads.
bool pad_into_max_pool(Graph& graph, RewriteReport* report = nullptr);
/// A border of zeros in front of a convolution: the convolution pads.
bool pad_into_conv(Graph& graph, RewriteReport* report = nullptr);
/// A product -> Reshape that splits its rows: the reshape comes first, and the Linear is MatMul and Add.
bool unflatten_linear(Graph& graph, RewriteReport* report = nullptr);
/// Flatten -> (Dropout|activation)* -> Linear becomes (..)* -> Conv 1x1 -> Flatten, where the map is 1x1.
bool flatten_linear_to_conv1x1(Graph& graph, RewriteReport* report = nullptr);

/// Einsum of two operands with a sum over both is a MatMul between transposes and reshapes.
bool convert_einsum(Graph& graph, RewriteReport* report = nullptr);
/// The Linear, or the three, behind q, k and v of a self-attention become one mha_in_projection.
bool decompose_attention(Graph& graph, RewriteReport* report = nullptr);

/// Rolls around the windows of an attention become one swin_window_partition and one swin_window_reverse.
bool convert_shifted_windows(Graph& graph, RewriteReport* report = nullptr);
/// Transposes that only move axes of extent 1 become reshapes, but for those of images' channels.
bool transpose_of_unit_axes(Graph& graph, RewriteReport* report = nullptr);

/// Weights behind DequantizeLinear become floating-point constants: for lowering, not for the graph that is exported.
bool fold_dequantized(Graph& graph);

/// Recomposition and conversion to a fixed point, in the order above; the transposes last and once.
bool recompose_and_convert(Graph& graph, RewriteReport* report = nullptr);

}  // namespace opfuse
