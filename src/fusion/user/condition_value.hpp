// What conditions compute with, and the properties they read from a match.
#pragma once

#include <string>
#include <vector>

#include "match/matcher.hpp"

namespace opfuse {

struct ConditionValue {
  enum class Kind { unknown, boolean, number, text, list };
  Kind kind = Kind::unknown;  ///< unknown: a symbolic dimension, or the property of something absent
  double number = 0;          ///< booleans: 0 or 1
  std::string text;
  std::vector<ConditionValue> list;

  static ConditionValue of(bool b) { return {Kind::boolean, b ? 1.0 : 0.0, {}, {}}; }
  static ConditionValue of(double n) { return {Kind::number, n, {}, {}}; }
  static ConditionValue of(std::string t) { return {Kind::text, 0, std::move(t), {}}; }
  std::string print() const;
};

/// The property of what is bound; unknown when the binding is absent or the value is not known.
ConditionValue property_of(const Match& match, const std::string& binding, const std::string& property);

/// Elements with a binding, of sides and alternatives too: the first of each name, in the order of the text.
std::vector<const Element*> bindings_of(const Pattern& topology);

/// Properties that a binding can have: attributes of its operators and the general ones.
std::vector<std::string> properties_of(const Element& element);

}  // namespace opfuse
