// Attributes by name, with defaults for absent ones.
#include "base/fail.hpp"
#include "region/lowering.hpp"

namespace opfuse {

int64_t AttrView::integer(std::string_view name, int64_t fallback) const {
  const AttrValue* value = find(map_, name);
  if (value == nullptr) return fallback;
  if (const auto* i = std::get_if<int64_t>(value)) return *i;
  if (const auto* b = std::get_if<bool>(value)) return *b ? 1 : 0;
  throw fail(E::bad_attribute, "attribute '{}' is not an integer", name);
}

double AttrView::real(std::string_view name, double fallback) const {
  const AttrValue* value = find(map_, name);
  if (value == nullptr) return fallback;
  if (const auto* d = std::get_if<double>(value)) return *d;
  if (const auto* i = std::get_if<int64_t>(value)) return static_cast<double>(*i);
  throw fail(E::bad_attribute, "attribute '{}' is not a number", name);
}

std::string AttrView::text(std::string_view name, std::string fallback) const {
  const AttrValue* value = find(map_, name);
  if (value == nullptr) return fallback;
  if (const auto* s = std::get_if<std::string>(value)) return *s;
  throw fail(E::bad_attribute, "attribute '{}' is not text", name);
}

std::vector<int64_t> AttrView::integers(std::string_view name) const {
  const AttrValue* value = find(map_, name);
  if (value == nullptr) return {};
  if (const auto* list = std::get_if<std::vector<int64_t>>(value)) return *list;
  throw fail(E::bad_attribute, "attribute '{}' is not a list of integers", name);
}

}  // namespace opfuse
