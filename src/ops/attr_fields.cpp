// Reading attributes by type. The lenient readings (integer for real, empty list for any list, 0/1 for a
// boolean) exist because the text form cannot tell `alpha = 1` from `alpha = 1.0` and `[]` has no type.
#include "ops/attr_fields.hpp"

#include <algorithm>

#include "base/fail.hpp"

namespace opfuse {
namespace {

std::string_view kind_of(const AttrValue& value) {
  static constexpr std::string_view kNames[] = {"an integer",        "a real",         "a boolean",
                                                "a string",          "integers",       "a list of reals",
                                                "a list of strings", "an element type"};
  return kNames[value.index()];
}

[[noreturn]] void wrong_type(std::string_view name, const AttrValue& value, std::string_view wanted) {
  throw fail(E::bad_attribute, "attribute \"{}\" must be {}, not {} ({})", name, wanted, kind_of(value),
             text_of(value));
}

bool is_empty_list(const AttrValue& value) {
  if (auto* list = std::get_if<std::vector<int64_t>>(&value)) return list->empty();
  if (auto* list = std::get_if<std::vector<double>>(&value)) return list->empty();
  if (auto* list = std::get_if<std::vector<std::string>>(&value)) return list->empty();
  return false;
}

template <class T>
void read_exactly(std::string_view name, const AttrValue& value, T& into, std::string_view wanted) {
  const T* found = std::get_if<T>(&value);
  if (!found) wrong_type(name, value, wanted);
  into = *found;
}

template <class T>
void read_list(std::string_view name, const AttrValue& value, std::vector<T>& into, std::string_view wanted) {
  if (is_empty_list(value))
    into.clear();
  else
    read_exactly(name, value, into, wanted);
}

}  // namespace

void read_attr(std::string_view name, const AttrValue& value, int64_t& into) {
  read_exactly(name, value, into, "an integer");
}

void read_attr(std::string_view name, const AttrValue& value, double& into) {
  if (auto* integer = std::get_if<int64_t>(&value))
    into = static_cast<double>(*integer);
  else
    read_exactly(name, value, into, "a real");
}

void read_attr(std::string_view name, const AttrValue& value, bool& into) {
  auto* integer = std::get_if<int64_t>(&value);
  if (integer && (*integer == 0 || *integer == 1))
    into = *integer == 1;
  else
    read_exactly(name, value, into, "a boolean");
}

void read_attr(std::string_view name, const AttrValue& value, std::string& into) {
  read_exactly(name, value, into, "a string");
}

void read_attr(std::string_view name, const AttrValue& value, std::vector<int64_t>& into) {
  read_list(name, value, into, "a list of integers");
}

void read_attr(std::string_view name, const AttrValue& value, std::vector<double>& into) {
  if (auto* integers = std::get_if<std::vector<int64_t>>(&value))
    into.assign(integers->begin(), integers->end());
  else
    read_list(name, value, into, "a list of reals");
}

void read_attr(std::string_view name, const AttrValue& value, std::vector<std::string>& into) {
  read_list(name, value, into, "a list of strings");
}

void read_attr(std::string_view name, const AttrValue& value, DType& into) {
  if (auto* text = std::get_if<std::string>(&value)) {
    auto dtype = parse_dtype(*text);
    if (!dtype) wrong_type(name, value, "an element type");
    into = *dtype;
  } else {
    read_exactly(name, value, into, "an element type");
  }
}

size_t enum_index(std::string_view name, const AttrValue& value, std::span<const char* const> names) {
  std::string text;
  read_attr(name, value, text);
  auto found = std::find(names.begin(), names.end(), text);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  std::string all;
  for (const char* each : names) all += (all.empty() ? "" : ", ") + std::string(each);
  throw fail(E::bad_attribute, "attribute \"{}\" is \"{}\", but must be one of: {}", name, text, all);
}

void check_attr_names(const AttrMap& map, const std::vector<std::string_view>& known, std::string_view op) {
  for (const auto& [name, value] : map) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string all;
    for (std::string_view each : known) all += (all.empty() ? "" : ", ") + std::string(each);
    throw fail(E::bad_attribute, "operator {} has no attribute \"{}\"", op, name)
        .hint(all.empty() ? "it has no attributes" : "its attributes: " + all);
  }
}

}  // namespace opfuse
