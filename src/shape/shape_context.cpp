// The questions that every shaping pass asks, in their order: wanted, legal, a gain.
#include "shape/shape_context.hpp"

#include <algorithm>

namespace opfuse {

bool ShapeContext::multiplies_narrow(const Node& node) const {
  const auto asked = [&](const std::string& name) {
    const auto at = precisions.find(name);
    return at != precisions.end() &&
           ((multiplies_bf16 && at->second == "bf16") || (multiplies_f16 && at->second == "f16"));
  };
  return asked(node.label) || std::any_of(node.sources.begin(), node.sources.end(),
                                          [&](const Source& source) { return asked(source.name); });
}

std::optional<Decline> ShapeContext::switched_off(const std::string& pass) const {
  if (!off.contains(pass)) return std::nullopt;
  return Decline{"disabled", "the pass " + pass + " is switched off", {}};
}

std::optional<Decline> ShapeContext::loses(const std::string& pass, const Node& joined) const {
  const auto gain = gains.find(pass);
  return gain == gains.end() ? std::nullopt : gain->second(joined);
}

namespace {

bool holds(const Node& group, const std::string& name) {
  if (group.name() == name) return true;
  if (!group.body) return false;
  for (const Node* inner : group.body->nodes())
    if (holds(*inner, name)) return true;
  return false;
}

}  // namespace

std::optional<Decline> ShapeContext::forbids(const Node& joined) const {
  for (const auto& [a, b] : apart)
    if (holds(joined, a) && holds(joined, b))
      return Decline{"no_fuse", "\"" + a + "\" and \"" + b + "\" are to stay apart", {a, b}};
  return legal ? legal(joined) : std::nullopt;
}

std::optional<Decline> ShapeContext::refuses(const std::string& pass, const Node& joined) const {
  if (auto why = forbids(joined)) return why;
  return loses(pass, joined);
}

}  // namespace opfuse
