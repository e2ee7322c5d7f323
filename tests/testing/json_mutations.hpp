// Values of a JSON text, and what else could stand in their place.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace opfuse {

/// Other values of the kind, and of other kinds.
inline std::vector<nlohmann::json> others(const nlohmann::json& value) {
  using nlohmann::json;
  std::vector<json> list;
  if (value.is_number_integer()) {
    const int64_t n = value.get<int64_t>();
    list = {n + 1, n - 1, n * 2 + 64, -1, 0, int64_t{1} << 31, int64_t{1} << 62, INT64_MIN, UINT64_MAX, 0.5, "1"};
  } else if (value.is_string()) {
    const std::string text = value;
    list = {text + "1", "", "4096", "-64", "9223372036854775807", "nobody*64", "1//0", std::string(5000, '('), 7};
    if (!text.empty()) list.push_back(text.substr(1));
  } else if (value.is_array()) {
    json shorter = value, longer = value;
    if (!value.empty()) {
      shorter.erase(shorter.size() - 1), longer.push_back(value[0]);
      json turned = value;
      std::reverse(turned.begin(), turned.end());
      list = {shorter, longer, turned};
    }
    list.push_back(json::array());
    list.push_back(json::array({7}));
  } else if (value.is_object()) {
    for (const auto& [key, part] : value.items()) {
      json without = value;
      without.erase(key);
      list.push_back(without);
    }
  }
  list.push_back(nullptr);
  return list;
}

/// Pointers to all values of the header, itself included.
inline void collect(const nlohmann::json& value, const nlohmann::json::json_pointer& at,
                    std::vector<nlohmann::json::json_pointer>& into) {
  into.push_back(at);
  if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i) collect(value[i], at / i, into);
  if (value.is_object())
    for (const auto& [key, part] : value.items()) collect(part, at / key, into);
}

}  // namespace opfuse
