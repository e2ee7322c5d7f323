//     q, k, v -- attention -- y
//
// softmax(q k * scale + mask) v. A module of its own even where it needs several kernels: it has the points of q, k and
// v.
#include "fusion/patterns.hpp"
#include "match/attention.hpp"

namespace opfuse {

static const Value* query(const Node& node) { return attention_parts(node)->q; }
static const Value* key(const Node& node) { return attention_parts(node)->k; }
static const Value* value(const Node& node) { return attention_parts(node)->v; }

FusionPattern scaled_dot_product_attention() {
  return {
      .name = "ScaledDotProductAttention",
      .module = "FusedScaledDotProductAttention",
      .doc = "Scaled dot-product attention: softmax(q k * scale + mask) v.",
      .topology = op(kAttention, "attention"),
      .where = {one_float_dtype({"attention"})},
      .root = "attention",
      .points = {{"INPUT", "attention", query}, {"KEY_INPUT", "attention", key}, {"VALUE_INPUT", "attention", value}},
      .divisible = true};
}

}  // namespace opfuse
