// Which operators a pattern's match can end in: most patterns are ruled out at most nodes by the name alone.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "match/pattern.hpp"

namespace opfuse {

/// Names that a match's anchor may have; nullopt: any.
using AnchorOps = std::optional<std::set<std::string, std::less<>>>;
AnchorOps anchor_ops(const Pattern& pattern);

/// False: no match of the pattern ends at `node`, nor does an attempt fit a single node.
inline bool may_end_at(const AnchorOps& ops, const Node& node) { return !ops || ops->contains(operator_name(node)); }

}  // namespace opfuse
