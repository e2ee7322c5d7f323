// The payload and type of a constant in the text form.
#pragma once

#include "ir/graph.hpp"
#include "ir/scanner.hpp"

namespace opfuse {

/// Reads what follows `const`: a payload, ':' and a static type. E::bad_text, E::file_not_found.
Tensor parse_constant(Scanner& in, const ParseOptions& options);

}  // namespace opfuse
