// What a value is called where people read of it.
#pragma once

#include <string>

#include "ir/graph.hpp"

namespace opfuse {

/// Name of a value in reports: its source name, else "%id".
inline std::string value_name(const Value& value) {
  return value.name.empty() ? "%" + std::to_string(value.id) : value.name;
}

}  // namespace opfuse
