// What a node inside of a group reads, seen from outside: bodies may stand in bodies.
//
//     x -- [[matmul, add] of the module] --         the product's first factor is x
#pragma once

#include "ir/graph.hpp"

namespace opfuse {

/// The operand of `group` that `inner` has as its operand `index`; `inner` is the group or stands in it, at any depth.
/// Null: it is computed inside. `alone`: null too where something else inside reads it.
Value* inner_operand(const Node& group, const Node& inner, size_t index, bool alone = false);

}  // namespace opfuse
