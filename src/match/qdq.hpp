// Quantise-dequantise pairs as patterns see them: transparent between two operators of a match, part of a constant
// operand.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/decline.hpp"
#include "match/pattern.hpp"

namespace opfuse {

struct QdqPair {
  Node* quantize = nullptr;
  Node* dequantize = nullptr;
};

/// The pair that ends in `value`: DequantizeLinear of QuantizeLinear with equal constant scale, zero point and axis.
std::optional<QdqPair> qdq_pair(const Value* value);

/// One value, or constants of the same bits; absent ones are the same.
bool same_parameter(const Value* a, const Value* b);

/// Why one of `ops` behind a quantise and a dequantise that do not undo each other is not reached from `dequantize`;
/// nothing when that is not what stands there.
std::optional<Decline> unequal_pair(const std::vector<std::string>& ops, const Node* dequantize);

/// What the nodes of a pair between two elements of a match stand for.
const Element& pair_element();

/// Why such a pair keeps the match from holding: `node` of it is read outside.
Decline escaping_pair(const Node& node);

/// A constant, or what DequantizeLinear makes of one (also of QuantizeLinear of a constant): weights of quantised
/// models.
bool is_constant_or_dequantized(const Value* value);

}  // namespace opfuse
