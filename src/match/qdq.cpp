// Pairs are recognised by value, not by name: exporters write one scale for both nodes or two equal ones.
#include "match/qdq.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace opfuse {

bool same_parameter(const Value* a, const Value* b) {
  if (a == b) return true;
  return a && b && a->is_constant() && b->is_constant() && a->constant->same_bits(*b->constant);
}

static bool same_axis(const Node& a, const Node& b) {
  if (a.input(1)->type.shape.rank() == 0) return true;
  const AttrMap x = a.attr_map(), y = b.attr_map();
  for (const char* name : {"axis", "block_size"}) {
    const AttrValue *of_a = find(x, name), *of_b = find(y, name);
    if (!of_a || !of_b || *of_a != *of_b) return false;
  }
  return true;
}

std::optional<QdqPair> qdq_pair(const Value* value) {
  Node* dequantize = value ? value->producer : nullptr;
  if (!dequantize || !dequantize->is("dequantize_linear")) return std::nullopt;
  Node* quantize = dequantize->input(0)->producer;
  if (!quantize || !quantize->is("quantize_linear")) return std::nullopt;
  const bool same = same_parameter(quantize->input(1), dequantize->input(1)) &&
                    same_parameter(quantize->input(2), dequantize->input(2)) && same_axis(*quantize, *dequantize);
  if (!same || !quantize->input(1)->is_constant()) return std::nullopt;
  return QdqPair{quantize, dequantize};
}

std::optional<Decline> unequal_pair(const std::vector<std::string>& ops, const Node* node) {
  const Node* q = node && node->is("dequantize_linear") ? node->input(0)->producer : nullptr;
  const Node* behind = q && q->is("quantize_linear") ? q->input(0)->producer : nullptr;
  if (!behind || qdq_pair(node->output())) return std::nullopt;
  if (std::find(ops.begin(), ops.end(), operator_name(*behind)) == ops.end()) return std::nullopt;
  return Decline{"qdq_pair",
                 fmt::format("{} and {} between {} and its reader have different scales or zero points", describe(*q),
                             describe(*node), describe(*behind)),
                 {q->name(), node->name()}};
}

const Element& pair_element() {
  static const Element kElement{.kind = ElementKind::op, .ops = {"Q/DQ"}};
  return kElement;
}

Decline escaping_pair(const Node& node) {
  return {"qdq_pair",
          fmt::format("the Q/DQ pair at {} stands between two operators of the group and is read elsewhere too",
                      describe(node)),
          {node.name()}};
}

bool is_constant_or_dequantized(const Value* value) {
  if (!value) return false;
  if (value->is_constant()) return true;
  const Node* node = value->producer;
  if (!node || (!node->is("dequantize_linear") && !node->is("quantize_linear"))) return false;
  return std::all_of(node->inputs.begin(), node->inputs.end(),
                     [](const Value* input) { return !input || is_constant_or_dequantized(input); });
}

}  // namespace opfuse
