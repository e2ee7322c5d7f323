#pragma once

#include <string>

#include "ir/graph.hpp"

namespace opfuse {

/// The name of a value, "%id" of one that has none.
inline std::string name_of(const Value& value) {
  return value.name.empty() ? "%" + std::to_string(value.id) : value.name;
}

}  // namespace opfuse
