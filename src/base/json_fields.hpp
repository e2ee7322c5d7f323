// Fields of untrusted JSON: what is not of the kind or out of range is E::bad_file.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/fail.hpp"

namespace opfuse {

/// A whole number that `T` holds; the library would convert fractions and drop bits.
template <class T>
T whole(const nlohmann::json& value) {
  if (!value.is_number_integer()) throw fail(E::bad_file, "{} is not a whole number", value.dump());
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    if (std::in_range<T>(number)) return static_cast<T>(number);
  } else if (const int64_t number = value.get<int64_t>(); std::in_range<T>(number)) {
    return static_cast<T>(number);
  }
  throw fail(E::bad_file, "{} is out of range", value.dump());
}

/// The list itself; E::bad_file when it is none, or has not `size` entries (0: any).
inline const nlohmann::json& listed(const nlohmann::json& list, size_t size = 0) {
  if (!list.is_array() || (size > 0 && list.size() != size))
    throw fail(E::bad_file, "a list does not have the entries it should have");
  return list;
}

template <class T>
std::vector<T> wholes(const nlohmann::json& list) {
  std::vector<T> numbers;
  for (const nlohmann::json& value : listed(list)) numbers.push_back(whole<T>(value));
  return numbers;
}

}  // namespace opfuse
