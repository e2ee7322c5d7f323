// Recomposition and conversion as passes of the manager.
#include "passes/passes.hpp"
#include "passes/recompose.hpp"

namespace opfuse {

Pass recompose_norms() {
  return {"recompose-norms",
          "Name normalisations and softmax where exporters wrote primitives.",
          [](Graph& g, PassContext& c) { return recompose_norms(g, c.report); },
          {}};
}

Pass recompose_activations() {
  return {"recompose-activations",
          "Name the eight activations in every spelling.",
          [](Graph& g, PassContext& c) { return recompose_activations(g, c.report); },
          {}};
}

Pass convert_einsum() {
  return {"convert-einsum",
          "An Einsum of two operands becomes a matrix product.",
          [](Graph& g, PassContext& c) { return convert_einsum(g, c.report); },
          {}};
}

Pass recompose_attention() {
  return {"recompose-attention",
          "Name attention where two products and a softmax spell it.",
          [](Graph& g, PassContext& c) { return recompose_attention(g, c.report); },
          {}};
}

Pass recompose_movement() {
  return {"recompose-movement",
          "Name channel shuffles and windows where reshapes and transposes spell them.",
          [](Graph& g, PassContext& c) { return recompose_movement(g, c.report); },
          {}};
}

Pass recompose_conv_affine() {
  return {"recompose-conv-affine",
          "Per-channel constants after a convolution are its bias or a BatchNorm.",
          [](Graph& g, PassContext& c) { return recompose_conv_affine(g, c.report); },
          {}};
}

Pass remove_identity_pools() {
  return {"remove-identity-pools",
          "Remove averages over a single element.",
          [](Graph& g, PassContext& c) { return remove_identity_pools(g, c.report); },
          {}};
}

Pass pad_into_max_pool() {
  return {"pad-into-max-pool",
          "A border of zeros around what is never negative is the max pool's own padding.",
          [](Graph& g, PassContext& c) { return pad_into_max_pool(g, c.report); },
          {}};
}

Pass pad_into_conv() {
  return {"pad-into-conv",
          "A border of zeros in front of a convolution is the convolution's own padding.",
          [](Graph& g, PassContext& c) { return pad_into_conv(g, c.report); },
          {}};
}

Pass unflatten_linear() {
  return {"unflatten-linear",
          "A Linear whose rows were flattened works on the rank around it.",
          [](Graph& g, PassContext& c) { return unflatten_linear(g, c.report); },
          {}};
}

Pass flatten_linear_to_conv1x1() {
  return {"flatten-linear-to-conv1x1",
          "A Linear after the Flatten of a 1x1 map becomes a 1x1 convolution.",
          [](Graph& g, PassContext& c) { return flatten_linear_to_conv1x1(g, c.report); },
          {}};
}

Pass decompose_attention() {
  return {"decompose-attention",
          "The projections of q, k and v of a self-attention become one module.",
          [](Graph& g, PassContext& c) { return decompose_attention(g, c.report); },
          {}};
}

Pass convert_shifted_windows() {
  return {"convert-shifted-windows",
          "Rolls before and after the windows of an attention join their partition and reversal.",
          [](Graph& g, PassContext& c) { return convert_shifted_windows(g, c.report); },
          {}};
}

Pass transpose_of_unit_axes() {
  return {"transpose-of-unit-axes",
          "A Transpose that only moves axes of extent 1 becomes a Reshape.",
          [](Graph& g, PassContext& c) { return transpose_of_unit_axes(g, c.report); },
          {}};
}

std::vector<Pass> recompose_passes() {
  return {
      until_stable("recompose", {recompose_norms(), recompose_activations(),  // first: conv + 3 may be a hard swish
                                 convert_einsum(), recompose_attention(), recompose_movement(), recompose_conv_affine(),
                                 remove_identity_pools(), pad_into_max_pool(), pad_into_conv(), unflatten_linear(),
                                 flatten_linear_to_conv1x1(), decompose_attention(), convert_shifted_windows()}),
      transpose_of_unit_axes()};  // last: what is above looks for transposes
}

}  // namespace opfuse
