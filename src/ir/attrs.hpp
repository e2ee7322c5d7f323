// Attributes. Operators declare them as typed structs; this is the type-erased form that printing,
// parsing, comparing, hashing, import and export share.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tensor/dtype.hpp"
#include "tensor/tensor.hpp"

namespace opfuse {

using AttrValue = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>, DType>;

/// Ordered as declared. Enumerations are stored by name.
using AttrMap = std::vector<std::pair<std::string, AttrValue>>;

const AttrValue* find(const AttrMap& attrs, std::string_view name);
std::string text_of(const AttrValue& value);  ///< "[1,1]", "0.5", "\"SAME_UPPER\"", "true", "f32"

/// Names of an enumeration's values, in order: specialise next to the enum.
///   template <> inline constexpr auto enum_names<Form> = std::array{"exact", "tanh"};
template <class T>
inline constexpr int enum_names = 0;

// An Attrs struct lists its fields once:
//   template <class Self, class F> static void each(Self& self, F&& field) { field("pads", self.pads); }
// Field types: int64_t, double, bool, std::string, std::vector<int64_t>, std::vector<double>,
// std::vector<std::string>, DType, and enums that have enum_names.

}  // namespace opfuse
