// The table of contents of graph passes: one line and one sentence each. Append only.
#pragma once

#include "passes/pass_manager.hpp"

namespace opfuse {

/// Nodes whose operands are constant become constants; so do shapes that are known.
Pass fold_constants();
/// Of nodes that compute the same from the same operands one remains.
Pass eliminate_common_subexpressions();
/// Identity, and Dropout as inference sees it.
Pass remove_identity();
/// Reshapes of reshapes, transposes of transposes, and data movement that moves nothing.
Pass simplify_movement();
/// A Reshape whose target is computed from shapes gets it as a constant (0 and -1 for symbolic dimensions).
Pass fix_reshape_targets();

/// All of the above until nothing changes, and very many operands in parts: what every model goes through first.
std::vector<Pass> cleaning_passes();

/// layer_norm, rms_norm, l2_norm and softmax from the chains of primitives that exporters write.
Pass recompose_norms();
/// The eight activations from their spellings: the single operator where equal, else a composite.
Pass recompose_activations();
/// Einsum of two operands with a sum over both is a MatMul.
Pass convert_einsum();
/// softmax(q k * s + mask) v as one composite.
Pass recompose_attention();
/// Channel shuffles and windows.
Pass recompose_movement();
/// An instance norm between reshapes is group_norm.
Pass recompose_group_norm();
/// Conv -> Add(per-channel constant) is a bias; Conv -> Mul [-> Add] by per-channel constants is batch_norm.
Pass recompose_conv_affine();
/// An average over one element is that element.
Pass remove_identity_pools();
/// A border of zeros around what is never negative, in front of a max pool: the pool pads.
Pass pad_into_max_pool();
/// A border of zeros in front of a convolution: the convolution pads.
Pass pad_into_conv();
/// A Linear whose rows were flattened works on the rank around it.
Pass unflatten_linear();
/// A Linear after the Flatten of a 1x1 map is a 1x1 convolution before it.
Pass flatten_linear_to_conv1x1();

/// The projections behind q, k and v of a self-attention are one module.
Pass decompose_attention();

/// Shifted windows: rolls join the partition and the reversal they belong to.
Pass convert_shifted_windows();

/// Tokens that become an image, or an image tokens, are turned as an image.
Pass rows_to_images();

/// A transpose that moves nothing in memory, of one sequence for example, is a reshape.
Pass transpose_of_unit_axes();

/// A slice that only slices read is a part of each of them.
Pass merge_slices();

/// A Concat that repeats the operands of an earlier one reads that one's result.
Pass nest_concats();

/// A Sum, Mean, Max or Min of very many operands is a chain of them.
Pass split_operands();

/// Recomposition and conversions until nothing changes, and what they must not see: what comes before fusion.
std::vector<Pass> recompose_passes();

/// What planning wants to see: cleaned; recomposed and converted; cleaned again, since conversions leave dead constants
/// and foldable reshapes.
std::vector<Pass> preparing_passes();

/// Every pass by itself, for `opfuse passes` and for replaying reproducers.
const std::vector<Pass>& all_passes();
/// One of them, or of `more`. E::unknown_name with a did-you-mean.
Pass pass_named(std::string_view name, const std::vector<Pass>& more = {});

}  // namespace opfuse
