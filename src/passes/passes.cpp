// The lists of passes.
#include "passes/passes.hpp"

#include <algorithm>
#include <iterator>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"

namespace opfuse {

std::vector<Pass> cleaning_passes() {
  return {until_stable("clean", {remove_identity(),      // first: real neighbours for everything after it
                                 fold_constants(),       // shape arithmetic becomes constants
                                 fix_reshape_targets(),  // what of it stays symbolic
                                 simplify_movement(),    // needs constant reshape targets
                                 eliminate_common_subexpressions()}),
          split_operands()};
}

std::vector<Pass> recompose_passes() {
  return {
      until_stable("recompose", {recompose_norms(), recompose_activations(),  // first: conv + 3 may be a hard swish
                                 convert_einsum(), recompose_attention(), recompose_movement(), recompose_group_norm(),
                                 recompose_conv_affine(), remove_identity_pools(), pad_into_max_pool(), pad_into_conv(),
                                 unflatten_linear(), flatten_linear_to_conv1x1(), decompose_attention(),
                                 convert_shifted_windows()}),  // looks for attention behind its projection
      rows_to_images(), transpose_of_unit_axes(),              // behind what looks for transposes
      merge_slices(),                                          // behind what looks for halves of a slice
      nest_concats()};
}

std::vector<Pass> preparing_passes() {
  std::vector<Pass> passes = cleaning_passes();
  for (std::vector<Pass> more : {recompose_passes(), cleaning_passes()})
    std::move(more.begin(), more.end(), std::back_inserter(passes));
  return passes;
}

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> passes = {// cleaning, recomposition, conversions
                                           fold_constants(),
                                           eliminate_common_subexpressions(),
                                           remove_identity(),
                                           simplify_movement(),
                                           fix_reshape_targets(),
                                           recompose_norms(),
                                           recompose_activations(),
                                           recompose_conv_affine(),
                                           recompose_group_norm(),
                                           convert_einsum(),
                                           recompose_attention(),
                                           recompose_movement(),
                                           remove_identity_pools(),
                                           pad_into_max_pool(),
                                           flatten_linear_to_conv1x1(),
                                           unflatten_linear(),
                                           decompose_attention(),
                                           convert_shifted_windows(),
                                           rows_to_images(),
                                           transpose_of_unit_axes(),
                                           pad_into_conv(),
                                           merge_slices(),
                                           nest_concats(),
                                           split_operands()};
  return passes;
}

Pass pass_named(std::string_view name, const std::vector<Pass>& more) {
  std::vector<std::string> known;
  for (const std::vector<Pass>* list : {&all_passes(), &more})
    for (const Pass& pass : *list) {
      if (pass.name == name) return pass;
      known.push_back(pass.name);
    }
  throw fail(E::unknown_name, "there is no pass \"{}\"", name).hint(did_you_mean(name, known));
}

}  // namespace opfuse
