// Which groups take over the movements of elements around them (shape/absorb_movements.cpp).
#pragma once

#include "ir/graph.hpp"

namespace opfuse {

/// A group that holds an attention.
bool is_attention(const Node& node);
/// An attention, or a rotary embedding alone or behind movements.
bool takes_movements(const Node& node);

}  // namespace opfuse
