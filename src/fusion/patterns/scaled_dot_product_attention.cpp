//     q, k, v -- attention -- y
//
// softmax(q k * scale + mask) v. A module of its own even where it needs several kernels: it has the points of q, k and
// v.
#include "fusion/patterns.hpp"
#include "match/attention.hpp"

namespace opfuse {

/// A file may call any composite "attention".
static MatchPredicate has_parts() {
  return {"softmax(q k) v", [](const Match& m) -> std::optional<Decline> {
            const Node* node = m.node("attention");
            if (attention_parts(*node)) return std::nullopt;
            return Decline{"no_parts",
                           describe(*node) + " is called attention, but its body is not a softmax between two products",
                           {node->name()}};
          }};
}

static const Value* query(const Node& node) { return attention_parts(node)->q; }
static const Value* key(const Node& node) { return attention_parts(node)->k; }
static const Value* value(const Node& node) { return attention_parts(node)->v; }

FusionPattern scaled_dot_product_attention() {
  return {
      .name = "ScaledDotProductAttention",
      .module = "FusedScaledDotProductAttention",
      .doc = "Scaled dot-product attention: softmax(q k * scale + mask) v.",
      .topology = op(kAttention, "attention"),
      .where = {has_parts(), one_float_dtype({"attention"})},
      .root = "attention",
      .points = {{"INPUT", "attention", query}, {"KEY_INPUT", "attention", key}, {"VALUE_INPUT", "attention", value}},
      .divisible = true};
}

}  // namespace opfuse
