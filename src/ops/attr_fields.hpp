// Attribute structs <-> AttrMap, one overload per field type. See ir/attrs.hpp for the `each` convention.
#pragma once

#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ir/attrs.hpp"

namespace opfuse {

// Reading a field of that name and type. E::bad_attribute names the attribute and both types. An integer
// is accepted where a real is wanted, an empty list where any list is, 0 and 1 where a boolean is.
void read_attr(std::string_view name, const AttrValue& value, int64_t& into);
void read_attr(std::string_view name, const AttrValue& value, double& into);
void read_attr(std::string_view name, const AttrValue& value, bool& into);
void read_attr(std::string_view name, const AttrValue& value, std::string& into);
void read_attr(std::string_view name, const AttrValue& value, std::vector<int64_t>& into);
void read_attr(std::string_view name, const AttrValue& value, std::vector<double>& into);
void read_attr(std::string_view name, const AttrValue& value, std::vector<std::string>& into);
void read_attr(std::string_view name, const AttrValue& value, DType& into);

/// Index of the enumerator called `value`; E::bad_attribute lists the names.
size_t enum_index(std::string_view name, const AttrValue& value, std::span<const char* const> names);
/// Throws E::bad_attribute when `map` has a name that is not in `known`.
void check_attr_names(const AttrMap& map, const std::vector<std::string_view>& known, std::string_view op);

template <class Attrs>
AttrMap attrs_to_map(const Attrs& attrs) {
  AttrMap map;
  Attrs::each(attrs, [&](std::string_view name, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_enum_v<Field> && !std::is_same_v<Field, DType>)
      map.emplace_back(name, std::string(enum_names<Field>[static_cast<size_t>(field)]));
    else
      map.emplace_back(name, AttrValue(field));
  });
  return map;
}

template <class Attrs>
Attrs attrs_from_map(const AttrMap& map, std::string_view op) {
  Attrs attrs;
  std::vector<std::string_view> known;
  Attrs::each(attrs, [&](std::string_view name, auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    known.push_back(name);
    const AttrValue* value = find(map, name);
    if (!value) return;
    if constexpr (std::is_enum_v<Field> && !std::is_same_v<Field, DType>) {
      const auto& names = enum_names<Field>;
      std::vector<const char*> list(std::begin(names), std::end(names));
      field = static_cast<Field>(enum_index(name, *value, list));
    } else {
      read_attr(name, *value, field);
    }
  });
  check_attr_names(map, known, op);
  return attrs;
}

}  // namespace opfuse
