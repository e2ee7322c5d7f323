// Conditions of user patterns as text:   conv.in_channels % 16 == 0 and conv.group == 1 and not has(bn)
//
//   or, and, not; == != < <= > >=; + - * / %; ( ); numbers, "text", true, false; has(binding); binding.property[index]
//
// A binding of an operator has its attributes under their own names, and op, dtype, rank, shape (of its result),
// inputs; convolutions in_channels, out_channels, kernel; products in_features, out_features. A binding of a value has
// dtype, rank, shape, elements, constant and value (of a one-element constant).
#pragma once

#include <string>
#include <string_view>

#include "match/matcher.hpp"

namespace opfuse {

/// Where a text begins in its file.
struct TextPlace {
  std::string file;
  size_t line = 1, column = 1;
};

/// E::bad_file with file, line and column: the text does not parse, names a binding that the topology lacks, or a
/// property that no operator of the binding has. A match that does not satisfy it is declined with the values that were
/// read.
MatchPredicate parse_condition(std::string_view text, const Pattern& topology, const TextPlace& at);

}  // namespace opfuse
