//     x -- mha_in_projection -- (q | k | v)
//
// The Linear in front of a self-attention whose result is cut into queries, keys and values, or the three of them; the
// conversion DecomposeMultiheadAttention found it. One Linear is one kernel; so are three where
// merge-siblings makes them one product, else they are three.
#include "fusion/patterns.hpp"
#include "match/attention.hpp"

namespace opfuse {

FusionPattern mha_in_projection() {
  return {.name = "MHAInProjection",
          .module = "FusedMHAInProjection",
          .doc = "The projections of queries, keys and values from one value.",
          .topology = op(kInProjection, "linear").shared(),
          .where = {one_float_dtype({"linear"})},
          .root = "linear",
          .points = {{"INPUT", "linear"}},
          .divisible = true};
}

}  // namespace opfuse
