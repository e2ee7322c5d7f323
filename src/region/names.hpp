// Names of the region form's enumerations, shared by its printer and parser.
#pragma once

#include <array>
#include <string_view>

#include "region/region.hpp"

namespace opfuse {

inline constexpr std::array<std::string_view, 6> kAnchorNames = {"map",    "row",       "contraction",
                                                                 "window", "attention", "scatter"};
inline constexpr std::array<std::string_view, 4> kReduceNames = {"sum", "product", "max", "min"};
inline constexpr std::array<std::string_view, 3> kRoleNames = {"input", "constant", "output"};

inline std::string_view name_of(Anchor anchor) { return kAnchorNames[static_cast<size_t>(anchor)]; }
inline std::string_view name_of(ReduceKind kind) { return kReduceNames[static_cast<size_t>(kind)]; }
inline std::string_view name_of(ParamRole role) { return kRoleNames[static_cast<size_t>(role)]; }

std::string text_of(const IndexExpr& index);
std::string text_of(const IndexMap& map);

}  // namespace opfuse
