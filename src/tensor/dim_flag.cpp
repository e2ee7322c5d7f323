#include "tensor/dim_flag.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace opfuse {

std::string dim_flag(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(),
                                 [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == '-'; });
  return plain ? fmt::format("--dim {}=N", name) : fmt::format("--dim \"{}=N\"", name);
}

}  // namespace opfuse
