// Groups of several products that have nothing in common but an operand become groups of one product each.
#pragma once

#include "ir/graph.hpp"

namespace opfuse {

/// `takes`: whether a product with these factors, as they are outside of the group, may stand alone. The group stays
/// where one may not, where a node reads what two products make, or where there are not two. Returns whether it did.
bool separate_products(Graph& graph, Node* group, bool (*takes)(const Value* left, const Value* right));

}  // namespace opfuse
