// Topologies as text, as patterns print themselves:
//
//   conv:conv -> [bn:batch_norm] -> act:{relu|sigmoid}        a chain; -> is optional; [x] may be absent
//   conv_block -> add:add(tensor) -> act:activation           sides in parentheses right behind the operator
//   x:any -> fork(a:relu, -) -> sum:add                       branches that meet; - is the empty one
//   (r:relu){0,3}   mul(6)   w:constant   {relu | clip}       repetition, a number, a constant, alternatives
//   conv:conv*                                                other readers are allowed
//
// activation: the eight of the catalogue; conv_block: conv:conv [bn:batch_norm]; linear_block: linear with its bias.
#pragma once

#include <string_view>

#include "fusion/user/condition.hpp"

namespace opfuse {

/// E::bad_file with file, line and column; unknown operators get a did-you-mean.
Pattern parse_topology(std::string_view text, const TextPlace& at);

}  // namespace opfuse
