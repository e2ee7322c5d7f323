// The list of operators, and how one is declared.
#pragma once

#include "ir/graph.hpp"

namespace opfuse {

/// Every operator opfuse knows, in catalogue order (ops.cpp is the readable list).
const OpRegistry& ops();

/// The operator of that name; E::unknown_name with a did-you-mean.
const OpInfo* op_named(std::string_view name);

}  // namespace opfuse
